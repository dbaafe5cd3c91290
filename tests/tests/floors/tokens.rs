//! What a source says, as far as paths are concerned.

/// A name, a mark, or `::`.
#[derive(Clone, Debug)]
pub struct Token {
    pub line: usize,
    pub text: String,
}

pub fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// The source without comments, literals, lifetimes and blanks.
pub fn tokens(source: &str) -> Vec<Token> {
    let kept = |(_, text): &(usize, &str)| {
        is_name(text) && !text.contains(['"', '\'']) || *text == "::" || is_mark(text)
    };
    let own = |(line, text): (usize, &str)| Token { line, text: text.to_owned() };
    pieces(source).filter(kept).map(own).collect()
}

/// The comments that run to the end of their line, each with the number of its line.
pub fn line_comments(source: &str) -> impl Iterator<Item = (usize, &str)> {
    pieces(source).filter(|(_, text)| text.starts_with("//"))
}

fn is_mark(text: &str) -> bool {
    text.len() == 1 && !text.starts_with(|only: char| only.is_whitespace() || only.is_ascii_digit())
}

/// Comments, literals, names, marks and blanks, each with the number of its line.
fn pieces(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut rest, mut line) = (source, 1);
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let len = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '"' => string(rest),
            '\'' => quoted(rest),
            _ if raw_string(rest).is_some() => raw_string(rest).unwrap_or(1),
            'b' | 'c' if rest[1..].starts_with('"') => 1 + string(&rest[1..]),
            'b' if rest[1..].starts_with('\'') => 1 + quoted(&rest[1..]),
            _ if first.is_alphanumeric() || first == '_' => {
                rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let piece = (line, &rest[..len]);
        line += piece.1.matches('\n').count();
        rest = &rest[len..];
        Some(piece)
    })
}

fn comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match &rest[at..] {
            "" => return at,
            open if open.starts_with("/*") => (depth, at) = (depth + 1, at + 2),
            close if close.starts_with("*/") => (depth, at) = (depth - 1, at + 2),
            other => at += other.chars().next().map_or(1, char::len_utf8),
        }
        if depth == 0 {
            return at;
        }
    }
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, next) in rest.char_indices().skip(1) {
        match next {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, or only the mark of a lifetime.
fn quoted(rest: &str) -> usize {
    let mut next = rest.char_indices().skip(1);
    match (next.next(), next.next()) {
        (Some((_, '\\')), _) => 2 + rest[2..].find('\'').map_or(0, |at| if at == 0 { 2 } else { at + 1 }),
        (_, Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

fn raw_string(rest: &str) -> Option<usize> {
    let marks = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let fences = marks.len() - marks.trim_start_matches('#').len();
    let body = marks[fences..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(fences));
    Some(rest.len() - body.len() + body.find(&end)? + end.len())
}

/// Leaves out every item that has `#[cfg(test)]` before it.
pub fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens[at..].iter().map(|token| token.text.as_str()).take(MARK.len()).eq(MARK);
        at = if marked {
            item_end(&tokens, at)
        } else {
            kept.push(tokens[at].clone());
            at + 1
        };
    }
    kept
}

/// An item ends with a semicolon or with the brace that closes it, outside of all brackets.
pub fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(from) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token.text == ";" || token.text == "}") {
            return at + 1;
        }
    }
    tokens.len()
}
