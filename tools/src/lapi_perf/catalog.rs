//! The one table of tests: name, other names, what is done, how it is timed.

use super::error::{Failure, Result};
use crate::spelling::nearest;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Put,
    /// LAPI_Put without counters; its last 8 bytes are a number that the target polls.
    PutSeen,
    /// LAPI_Putv of a strided vector.
    PutStrided,
    /// LAPI_Putv of a list of pieces.
    PutPieces,
    Get,
    GetStrided,
    Am,
    /// LAPI_Amsend with a user header.
    AmHeader,
    /// LAPI_Amsend; the handler reads the data where it has arrived, and drops the message.
    AmRead,
    /// LAPI_AM_LW_XFER.
    AmLight,
    /// LAPI_Amsendv.
    AmStrided,
    /// LAPI_DGSP_XFER.
    Dgsp,
    /// LAPI_Rmw or LAPI_Rmw64, by the size.
    Rmw(Rmw),
    /// LAPI_Put and LAPI_Fence.
    Fence,
    Gfence,
}

/// An operation of LAPI_Rmw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rmw {
    Add,
    Or,
    Swap,
    CompareAndSwap,
}

/// How it is timed, and what the target does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Origin and target in turn; half of a round trip.
    PingPong,
    /// One operation at a time, until its origin (or, where it moves data to the target, its
    /// completion) counter is incremented. The target waits in LAPI and takes no part.
    Alone,
    /// A window of operations, then one reply of the target.
    Acknowledged,
    /// A window of operations, until the counters of all of them are incremented. The target
    /// takes no part.
    Window,
    /// As `Acknowledged`, from both sides at once.
    Both,
    /// All tasks of the job.
    Collective,
}

/// A test.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) name: &'static str,
    /// Names that people know from elsewhere.
    pub(super) aliases: &'static [&'static str],
    pub(super) operation: Operation,
    pub(super) pattern: Pattern,
    pub(super) meaning: &'static str,
}

use Operation::{
    Am, AmHeader, AmLight, AmRead, AmStrided, Dgsp, Fence, Get, GetStrided, Gfence, Put, PutPieces, PutSeen,
    PutStrided,
};
use Pattern::{Acknowledged, Alone, Both, Collective, PingPong, Window};

const fn test(
    name: &'static str,
    aliases: &'static [&'static str],
    operation: Operation,
    pattern: Pattern,
    meaning: &'static str,
) -> Test {
    Test { name, aliases, operation, pattern, meaning }
}

const ADD: Operation = Operation::Rmw(Rmw::Add);
const OR: Operation = Operation::Rmw(Rmw::Or);
const SWAP: Operation = Operation::Rmw(Rmw::Swap);
const CSWAP: Operation = Operation::Rmw(Rmw::CompareAndSwap);

/// All tests, in the order of `--list`.
pub(super) static TESTS: &[Test] = &[
    test("put_lat", &["put"], Put, PingPong, "LAPI_Put, in turn; the target waits on its target counter"),
    test(
        "put_seen",
        &["ucp_put_lat", "ib_write_lat"],
        PutSeen,
        PingPong,
        "LAPI_Put, in turn; the target polls the last 8 bytes of the data",
    ),
    test("put_cmpl", &["osu_put_latency"], Put, Alone, "LAPI_Put until its completion counter"),
    test("put_bw", &[], Put, Acknowledged, "a window of LAPI_Put, then a reply"),
    test("put_cbw", &["osu_put_bw"], Put, Window, "a window of LAPI_Put until their completion counters"),
    test("put_bibw", &["osu_put_bibw"], Put, Both, "a window of LAPI_Put, both ways at once"),
    test("get_lat", &["get", "osu_get_latency"], Get, Alone, "LAPI_Get until its origin counter"),
    test("get_bw", &["osu_get_bw"], Get, Window, "a window of LAPI_Get"),
    test("get_bibw", &[], Get, Both, "a window of LAPI_Get, both ways at once"),
    test(
        "am_lat",
        &["am", "pingpong", "fi_pingpong", "osu_latency"],
        Am,
        PingPong,
        "LAPI_Amsend, in turn; the handler names a buffer",
    ),
    test("am_cmpl", &[], Am, Alone, "LAPI_Amsend until its completion counter"),
    test("am_bw", &["osu_bw", "osu_mbw_mr"], Am, Acknowledged, "a window of LAPI_Amsend, then a reply"),
    test("am_bibw", &["osu_bibw"], Am, Both, "a window of LAPI_Amsend, both ways at once"),
    test("amh_lat", &["amh"], AmHeader, PingPong, "LAPI_Amsend with a user header (-H), in turn"),
    test("amh_bw", &[], AmHeader, Acknowledged, "a window of LAPI_Amsend with a user header"),
    test(
        "amread_lat",
        &["amread"],
        AmRead,
        PingPong,
        "LAPI_Amsend, in turn; the handler reads the data of up to 1K in place",
    ),
    test(
        "amlw_lat",
        &["amlw"],
        AmLight,
        PingPong,
        "the light-weight active message, in turn; below 128 bytes",
    ),
    test("putv_lat", &["putv"], PutStrided, PingPong, "LAPI_Putv, strided (-b), in turn"),
    test("putv_cmpl", &[], PutStrided, Alone, "LAPI_Putv, strided, until its completion counter"),
    test("putv_bw", &[], PutStrided, Acknowledged, "a window of LAPI_Putv, strided"),
    test("putiov_lat", &["putiov"], PutPieces, PingPong, "LAPI_Putv, a list of pieces (-b), in turn"),
    test("putiov_bw", &[], PutPieces, Acknowledged, "a window of LAPI_Putv, a list of pieces"),
    test("getv_lat", &["getv"], GetStrided, Alone, "LAPI_Getv, strided, until its origin counter"),
    test("getv_bw", &[], GetStrided, Window, "a window of LAPI_Getv, strided"),
    test("amv_lat", &["amv"], AmStrided, PingPong, "LAPI_Amsendv, strided, in turn"),
    test("amv_bw", &[], AmStrided, Acknowledged, "a window of LAPI_Amsendv, strided"),
    test("dgsp_lat", &["dgsp"], Dgsp, PingPong, "an active message by gather/scatter programs, in turn"),
    test("dgsp_bw", &[], Dgsp, Acknowledged, "a window of active messages by gather/scatter programs"),
    test("add_lat", &["add", "fadd", "osu_fop_latency"], ADD, Alone, "LAPI_Rmw or LAPI_Rmw64, FETCH_AND_ADD"),
    test("add_mr", &["fadd_mr"], ADD, Window, "a window of FETCH_AND_ADD"),
    test("or_lat", &["or"], OR, Alone, "FETCH_AND_OR"),
    test("or_mr", &[], OR, Window, "a window of FETCH_AND_OR"),
    test("swap_lat", &["swap"], SWAP, Alone, "SWAP"),
    test("swap_mr", &[], SWAP, Window, "a window of SWAP"),
    test("cswap_lat", &["cswap", "osu_cas_latency"], CSWAP, Alone, "COMPARE_AND_SWAP"),
    test("cswap_mr", &[], CSWAP, Window, "a window of COMPARE_AND_SWAP"),
    test("fence", &[], Fence, Alone, "LAPI_Put, then LAPI_Fence"),
    test("gfence", &["barrier", "osu_barrier"], Gfence, Collective, "LAPI_Gfence of all tasks"),
];

/// A name for several tests: those whose names it accepts.
struct Group {
    name: &'static str,
    holds: fn(&Test) -> bool,
    meaning: &'static str,
}

static GROUPS: &[Group] = &[
    Group { name: "lat", holds: Test::is_latency, meaning: "every test of one operation at a time" },
    Group { name: "bw", holds: |test| !test.is_latency(), meaning: "every test of a window of operations" },
    Group {
        name: "rmw",
        holds: |test| matches!(test.operation, Operation::Rmw(_)),
        meaning: "every test of LAPI_Rmw",
    },
    Group {
        name: "sync",
        holds: |test| matches!(test.operation, Fence | Gfence),
        meaning: "fence and gfence",
    },
    Group { name: "all", holds: |_| true, meaning: "every test" },
];

/// What runs when no test is named.
pub(super) const DEFAULT: &str = "put_lat,am_lat,get_lat,put_bw";

impl Test {
    /// Rows of it are about the time of one operation; the others about many at once.
    pub(super) fn is_latency(&self) -> bool {
        matches!(self.pattern, PingPong | Alone | Collective)
    }

    /// The data lies in blocks with gaps between them.
    pub(super) fn is_scattered(&self) -> bool {
        matches!(self.operation, PutStrided | PutPieces | GetStrided | AmStrided | Dgsp)
    }

    /// The blocks are of one size.
    pub(super) fn is_strided(&self) -> bool {
        matches!(self.operation, PutStrided | GetStrided | AmStrided)
    }

    /// Several origins may have one target.
    pub(super) fn takes_incast(&self) -> bool {
        matches!(self.pattern, Alone | Window | Collective)
    }

    /// The test of this name or alias.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        TESTS.iter().find(|test| test.name == name || test.aliases.contains(&name))
    }
}

/// The tests of a list of names, aliases and groups, each once, in the order of the list.
pub(super) fn choose(list: &str) -> Result<Vec<&'static Test>> {
    let mut chosen: Vec<&'static Test> = Vec::new();
    for name in list.split(',').map(str::trim) {
        let found: Vec<&Test> = match (Test::named(name), GROUPS.iter().find(|group| group.name == name)) {
            (Some(test), _) => vec![test],
            (None, Some(group)) => TESTS.iter().filter(|test| (group.holds)(test)).collect(),
            (None, None) => return Err(unknown(name)),
        };
        for test in found {
            if !chosen.iter().any(|before| before.name == test.name) {
                chosen.push(test);
            }
        }
    }
    Ok(chosen)
}

fn unknown(name: &str) -> Failure {
    if name.is_empty() {
        return Failure::usage("-t: an empty name of a test; lapi_perf --list has them all");
    }
    // Short names are near to everything.
    let near = nearest(name, &names()).filter(|_| name.len() > 3);
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    Failure::usage(format!("-t: there is no test {name}{hint} (lapi_perf --list has them all)"))
}

/// Every name that `-t` takes.
pub(crate) fn names() -> Vec<&'static str> {
    let tests = TESTS.iter().flat_map(|test| std::iter::once(&test.name).chain(test.aliases));
    tests.copied().chain(GROUPS.iter().map(|group| group.name)).collect()
}

/// The text of `--list`.
pub(super) fn list() -> String {
    let mut text = String::from("tests (-t takes several, by commas):\n\n");
    for Test { name, aliases, meaning, .. } in TESTS {
        let also =
            if aliases.is_empty() { String::new() } else { format!(" (also: {})", aliases.join(", ")) };
        text += &format!("  {name:<11} {meaning}{also}\n");
    }
    text += "\ngroups of tests:\n\n";
    for Group { name, meaning, .. } in GROUPS {
        text += &format!("  {name:<11} {meaning}\n");
    }
    text + &format!("\nwithout -t: {DEFAULT}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(list: &str) -> Vec<&'static str> {
        choose(list).expect("they exist").iter().map(|test| test.name).collect()
    }

    #[test]
    fn names_occur_once() {
        let mut all = names();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn a_list_may_have_aliases_and_groups() {
        assert_eq!(chosen("fadd,put_lat, barrier"), ["add_lat", "put_lat", "gfence"]);
        assert_eq!(chosen("gfence,sync"), ["gfence", "fence"]);
        assert_eq!(chosen("all").len(), TESTS.len());
        assert_eq!(chosen("lat").len() + chosen("bw").len(), TESTS.len());
        assert_eq!(chosen(DEFAULT).len(), 4);
    }

    #[test]
    fn an_unknown_name_gets_a_hint() {
        for (wrong, said) in [("put_lta", "did you mean put_lat?"), ("xyz", "--list"), ("", "empty")] {
            let message = choose(wrong).expect_err(wrong).to_string();
            assert!(message.contains(said), "{message}");
        }
    }
}
