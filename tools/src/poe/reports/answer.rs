//! What a task hands in: a few lines that begin with a word, for the summary, then an empty line and text.

/// Why a report is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A task's calls have waited for long without anything moving.
    Stall,
    /// A task has got the signal.
    Signal,
    /// `poe` has asked, with this number.
    Asked(u64),
}

/// A task's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub cause: Cause,
    /// The process that answers: not the task's own when that is a script.
    pub pid: i32,
    /// What it does, each to follow the task's name.
    pub clauses: Vec<String>,
    /// The tasks that it waits for.
    pub awaited: Vec<usize>,
    pub collectives: Vec<Collective>,
    pub text: String,
}

/// Where a task stands in the collective calls of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collective {
    pub instance: usize,
    /// How many it has entered.
    pub entered: u32,
    /// It is in the last of them.
    pub inside: bool,
}

impl Answer {
    /// `None` when it is no report of a form that we know. Words that we do not know are passed over.
    pub(super) fn parse(message: &str) -> Option<Self> {
        let (head, text) = message.split_once("\n\n").unwrap_or((message, ""));
        let mut lines = head.lines();
        let cause = match lines.next()?.strip_prefix("LAPI-REPORT 1 ")? {
            "stall" => Cause::Stall,
            "signal" => Cause::Signal,
            other => Cause::Asked(other.strip_prefix("asked ")?.parse().ok()?),
        };
        let mut answer = Self {
            cause,
            pid: 0,
            clauses: Vec::new(),
            awaited: Vec::new(),
            collectives: Vec::new(),
            text: text.to_owned(),
        };
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "pid" => answer.pid = rest.parse().ok()?,
                "says" => answer.clauses.push(rest.to_owned()),
                "for" => answer.awaited.push(rest.parse().ok()?),
                "collective" => answer.collectives.push(Collective::parse(rest)?),
                _ => {}
            }
        }
        Some(answer)
    }
}

impl Collective {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (instance, entered) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { instance, entered, inside: words.next()? == "in" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_apart() {
        let message = "LAPI-REPORT 1 asked 7\npid 42\nsays waits in LAPI_Gfence for task 3\nfor 3\nnew word\n\
                       collective 0 5 in\n\ntask 0 of 4\n\n  more";
        let answer = Answer::parse(message).expect("a report");
        assert_eq!(answer.cause, Cause::Asked(7));
        assert_eq!((answer.pid, &answer.awaited[..]), (42, &[3][..]));
        assert_eq!(answer.clauses, ["waits in LAPI_Gfence for task 3"]);
        assert_eq!(answer.collectives, [Collective { instance: 0, entered: 5, inside: true }]);
        assert_eq!(answer.text, "task 0 of 4\n\n  more");
    }

    #[test]
    fn what_is_no_report_is_none() {
        for message in
            ["", "LAPI-REPORT 2 stall", "LAPI-REPORT 1 bored", "LAPI-REPORT 1 asked x", "hello\nfor 3"]
        {
            assert_eq!(Answer::parse(message), None, "{message}");
        }
        for head in ["for me", "pid -", "collective 1", "collective x 2 in"] {
            assert_eq!(Answer::parse(&format!("LAPI-REPORT 1 stall\n{head}\n\n")), None, "{head}");
        }
    }
}
