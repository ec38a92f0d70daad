//! The first line of a script that names its language: `#!lua flags=no-writes`.

/// The text behind the first line of a script, with the end of that line so that lines keep their
/// numbers. A script may have no such line.
pub(crate) fn body(source: &[u8]) -> Result<&[u8], String> {
    if !source.starts_with(b"#!") {
        return Ok(source);
    }
    let end = source.iter().position(|byte| *byte == b'\n');
    let (line, body) =
        end.and_then(|end| source.split_at_checked(end)).ok_or("ERR Invalid script shebang")?;
    check(&String::from_utf8_lossy(line))?;
    Ok(body)
}

fn check(line: &str) -> Result<(), String> {
    let mut parts = line.split_whitespace();
    let engine = parts.next().unwrap_or_default();
    if engine != "#!lua" {
        return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
    }
    parts.try_for_each(check_option)
}

fn check_option(option: &str) -> Result<(), String> {
    let flags = option
        .strip_prefix("flags=")
        .ok_or_else(|| format!("ERR Unknown lua shebang option: {option}"))?;
    match flags.split(',').find(|flag| !flag.is_empty() && !FLAGS.contains(flag)) {
        Some(flag) => Err(format!("ERR Unexpected flag in script shebang: {flag}")),
        None => Ok(()),
    }
}

/// Flags that Redis 7 knows. None of them changes anything here.
const FLAGS: [&str; 5] =
    ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];
