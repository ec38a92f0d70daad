//! Paths and queries of requests: decoded, and refused if they have unknown parts.

use std::collections::BTreeMap;
use std::str::FromStr;

use model::Nanos;

use crate::problem::{Problem, Result};

/// The parts of a path, decoded.
pub(crate) fn segments(path: &str) -> Result<Vec<String>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return Ok(Vec::new());
    }
    path.split('/').map(|segment| decode_text(segment, "the path")).collect()
}

/// The parameters of a query. A reader takes its parameter out; the rest is unknown.
#[derive(Debug, Default)]
pub(crate) struct Query {
    parameters: BTreeMap<String, String>,
    known: Vec<&'static str>,
}

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self> {
        let mut parameters = BTreeMap::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (name.replace('+', " "), value.replace('+', " "));
            let (name, value) =
                (decode_text(&name, "the query")?, decode_text(&value, "the query")?);
            if parameters.insert(name.clone(), value).is_some() {
                return Err(Problem::bad_request(format!("parameter {name} is given twice")));
            }
        }
        Ok(Self { parameters, known: Vec::new() })
    }

    /// The text of a parameter.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.known.push(name);
        self.parameters.remove(name)
    }

    /// A parameter that is there or not: `browse`, `browse=true`, `browse=false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool> {
        Ok(self.choice(name)?.unwrap_or(false))
    }

    /// The same if nothing is said for itself.
    pub(crate) fn choice(&mut self, name: &'static str) -> Result<Option<bool>> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("false") => Ok(Some(false)),
            Some("" | "true") => Ok(Some(true)),
            Some(other) => Err(wrong(name, other, "true or false")),
        }
    }

    /// A number from `least` to `most`.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = u64::from_str(&text).ok().filter(|number| (least..=most).contains(number));
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        match number {
            Some(number) if plain => Ok(Some(number)),
            _ => Err(wrong(name, &text, &format!("a number from {least} to {most}"))),
        }
    }

    /// A span of time, `most` at most.
    pub(crate) fn duration(&mut self, name: &'static str, most: Nanos) -> Result<Option<Nanos>> {
        self.text(name).map(|text| duration(name, &text, most)).transpose()
    }

    /// Anything that can be read from a text.
    pub(crate) fn parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        what: &str,
    ) -> Result<Option<T>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| wrong(name, &text, what))
    }

    /// No more parameters are read: refuses the rest as unknown.
    pub(crate) fn finish(self) -> Result<()> {
        let Some(name) = self.parameters.keys().next() else { return Ok(()) };
        let known = if self.known.is_empty() { "none".into() } else { self.known.join(", ") };
        Err(Problem::bad_request(format!("parameter {name} is not known here, which are: {known}")))
    }
}

fn wrong(name: &str, value: &str, what: &str) -> Problem {
    Problem::bad_request(format!("{name} is {value:?} and has to be {what}"))
}

/// A whole number with a unit, such as `20s`; `0` without one.
pub(crate) fn duration(name: &str, text: &str, most: Nanos) -> Result<Nanos> {
    let what = format!("a duration such as 250ms, 20s, 5m or 2h, {} s at most", most.as_secs());
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let millis: Option<u64> = match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        "" if number == "0" => Some(0),
        _ => None,
    };
    let millis = millis.and_then(|unit| number.parse::<u64>().ok()?.checked_mul(unit));
    let span = millis.map(Nanos::from_millis).filter(|span| *span <= most);
    span.ok_or_else(|| wrong(name, text, &what))
}

/// Undoes percent-encoding of a text.
pub(crate) fn decode_text(text: &str, place: &str) -> Result<String> {
    String::from_utf8(decode(text, place)?).map_err(|_| not_encoded(place))
}

/// Undoes percent-encoding of any bytes.
pub(crate) fn decode(text: &str, place: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = more;
            continue;
        }
        let digits = more.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        let digits = digits.filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let byte = byte.ok_or_else(|| not_encoded(place))?;
        bytes.push(byte);
        rest = more.get(2..).unwrap_or_default();
    }
    Ok(bytes)
}

fn not_encoded(place: &str) -> Problem {
    Problem::bad_request(format!("{place} is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_part_by_part() {
        assert_eq!(segments("/").unwrap(), [] as [&str; 0]);
        assert_eq!(segments("/queues/a%2Fb/x%20y").unwrap(), ["queues", "a/b", "x y"]);
        assert_eq!(segments("/queues/").unwrap(), ["queues", ""]);
        for wrong in ["/%", "/%2", "/%zz", "/%+1", "/%ff"] {
            assert_eq!(segments(wrong).unwrap_err().kind, "bad-request", "{wrong}");
        }
    }

    #[test]
    fn query_parameters_unknown_or_repeated_refused() {
        let mut query = Query::parse(Some("max=5&wait=20s&browse&selector=a+%3D+1")).unwrap();
        assert_eq!(query.number("max", 1, 10).unwrap(), Some(5));
        assert_eq!(query.duration("wait", Nanos::MAX).unwrap(), Some(Nanos::from_secs(20)));
        assert!(query.flag("browse").unwrap());
        assert_eq!(query.text("selector").as_deref(), Some("a = 1"));
        assert_eq!(query.text("state"), None);
        query.finish().unwrap();
        let mut query = Query::parse(Some("maks=5")).unwrap();
        query.text("max");
        let problem = query.finish().unwrap_err();
        assert!(problem.detail.contains("maks") && problem.detail.contains("max"));
        assert!(Query::parse(Some("a=1&a=2")).is_err());
    }

    #[test]
    fn numbers_and_durations_have_bounds() {
        let number =
            |text: &str| Query::parse(Some(&format!("n={text}"))).unwrap().number("n", 1, 10);
        for wrong in ["0", "11", "x", "", "-1", "%2B5", "99999999999999999999999"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        let span = |text| duration("wait", text, Nanos::from_secs(60));
        assert_eq!(span("250ms").unwrap(), Nanos::from_millis(250));
        assert_eq!(span("1m").unwrap(), Nanos::from_secs(60));
        assert_eq!(span("0").unwrap(), Nanos::ZERO);
        for wrong in ["", "5", "s", "61s", "1y", "-1s", "99999999999999999999h", "1 s"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
