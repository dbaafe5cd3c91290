//! Slurm's lists of hosts: `n1,n[2-4,07],rack[1-2]node[01-03]`.

/// The first host of a list; `None` when the list is not one.
pub fn first(list: &str) -> Option<String> {
    let mut name = String::new();
    let mut rest = list.trim();
    loop {
        let end = rest.find(['[', ',']).unwrap_or(rest.len());
        let (text, next) = rest.split_at(end);
        name += text;
        match next.strip_prefix('[') {
            // A comma, or the end.
            None => break,
            Some(next) => {
                let (ranges, next) = next.split_once(']')?;
                name += first_number(ranges)?;
                rest = next;
            }
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// The first number of `2-4,07`, with its leading zeros.
fn first_number(ranges: &str) -> Option<&str> {
    let number = ranges.split(['-', ',']).next()?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_first_host() {
        for (list, host) in [
            ("node", "node"),
            ("n1,n2", "n1"),
            ("n[1-3]", "n1"),
            ("n[007-010,12]", "n007"),
            ("n[5,1-3],m", "n5"),
            ("rack[2-3]node[01-03]-ib,x", "rack2node01-ib"),
            ("a.b.example.org,c", "a.b.example.org"),
            (" n1 ", "n1"),
        ] {
            assert_eq!(first(list).as_deref(), Some(host), "{list}");
        }
        for list in ["", ",", "n[", "n[]", "n[x-y]", "n]", "n[-3]", "a b", "[[1]]"] {
            assert_eq!(first(list), None, "{list}");
        }
    }
}
