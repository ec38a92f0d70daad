use alloc::string::ToString as _;

use super::*;

fn rule(text: &str) -> Rule {
    Rule::parse(text).unwrap()
}

fn rights(allow: &[&str], deny: &[&str]) -> Rights {
    let read = |rules: &[&str]| rules.iter().map(|text| rule(text)).collect::<Vec<_>>();
    Rights::new("ann".into(), &read(allow), &read(deny))
}

#[test]
fn pattern_matches_whole_names() {
    let cases = [
        ("orders", "orders", true),
        ("orders", "orders.eu", false),
        ("orders", "order", false),
        ("orders.*", "orders.", true),
        ("orders.*", "orders.eu.1", true),
        ("orders.*", "orders", false),
        ("*", "x", true),
        ("**", "x", true),
        ("*.eu", "orders.eu", true),
        ("*.eu", "orders.eu.1", false),
        ("a*b*c", "abc", true),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "acb", false),
        ("a*aa", "aa", false),
        ("a*aa", "aaa", true),
        ("*ab*ab*", "abxab", true),
        ("*ab*ab*", "xabx", false),
        ("{user}.*", "ann.jobs", true),
        ("{user}.*", "bob.jobs", false),
        ("in.{user}", "in.ann", true),
        ("in.{client}", "in.c1", true),
        ("*.{client}.*", "a.c1.b", true),
        ("*-{user}-{client}", "x-ann-c1", true),
        ("*-{user}-{client}", "x-ann-c2", false),
        ("my queue*", "my queues", true),
        ("\u{e4}*", "\u{e4}\u{f6}", true),
    ];
    for (pattern, name, expected) in cases {
        let rights = rights(&[&alloc::format!("send {pattern}")], &[]);
        let found = rights.on(name, Some("c1")).contains(Right::Send);
        assert_eq!(found, expected, "{pattern:?} {name:?}");
    }
}

#[test]
fn pattern_agrees_with_glob() {
    let pieces = ["a", "b", "*", "ab"];
    for pattern in 0..pieces.len().pow(4) {
        let digit = |place: u32| pieces[pattern / pieces.len().pow(place) % pieces.len()];
        let pattern: String = (0..4).map(digit).collect();
        let rights = rights(&[&alloc::format!("look {pattern}")], &[]);
        for name in ["a", "b", "ab", "ba", "aab", "abab", "bbaab", "aaaaa"] {
            let expected = crate::glob::matches(pattern.as_bytes(), name.as_bytes());
            let found = rights.on(name, None).contains(Right::Look);
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }
}

#[test]
fn client_without_name_matches_no_client() {
    let rights = rights(&["send {client}", "send *{client}", "send a{client}*"], &[]);
    for name in ["{client}", "", "a", "x"] {
        assert!(rights.on(name, None).is_empty(), "{name}");
    }
}

#[test]
fn names_in_patterns_are_no_patterns() {
    let star = Rights::new("*".into(), &[rule("send {user}")], &[]);
    assert!(star.on("*", None).contains(Right::Send));
    assert!(star.on("anything", None).is_empty());
    assert!(rights(&["send {client}"], &[]).on("x", Some("*")).is_empty());
}

#[test]
fn denial_wins_and_silence_denies() {
    let rights = rights(&["send,receive,look *"], &["receive *.audit", "look secret"]);
    let on = |name| rights.on(name, None);
    assert!(on("a.audit").contains(Right::Send) && !on("a.audit").contains(Right::Receive));
    assert!(on("secret").contains(Right::Receive) && !on("secret").contains(Right::Look));
    assert!(!on("a").contains(Right::Manage) && !on("a").contains(Right::Operate));
    assert!(!rights.may_operate());
}

#[test]
fn operate_needs_no_pattern() {
    assert!(rights(&["operate"], &[]).may_operate());
    assert!(rights(&["look,operate a*"], &[]).may_operate());
    assert!(!rights(&["operate"], &["operate"]).may_operate());
    assert!(rights(&["operate"], &[]).on("a", None).is_empty());
}

#[test]
fn rules_are_shown_as_they_are_written() {
    for text in ["send,receive orders.*", "look *", "operate", "manage {user}.*.{client}"] {
        assert_eq!(rule(text).to_string(), text);
    }
    assert_eq!(rule("receive,send a**b").to_string(), "send,receive a*b");
}

#[test]
fn wrong_rules_say_why() {
    let long = alloc::format!("send {}", "x".repeat(rights_limits::PATTERN_BYTES_MAX + 1));
    let parts = alloc::format!("send {}", "a*".repeat(rights_limits::PATTERN_PARTS_MAX));
    let cases = [
        ("read a", "\"read\" is no right: they are send, receive, look, manage, operate"),
        ("", "\"\" is no right"),
        ("send,, a", "\"\" is no right"),
        ("send", "of which names?"),
        ("send ", "of which names?"),
        ("operate a", "leave out \"a\""),
        ("send {name}", "neither {user} nor {client}"),
        ("send a}", "neither {user} nor {client}"),
        ("send a\u{7}", "control character"),
        (&long, "512 bytes at most"),
        (&parts, "32 stars"),
    ];
    for (text, why) in cases {
        let error = Rule::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text:?}: {error}");
    }
}

#[test]
fn wider_rights_cover_narrower_ones() {
    let narrow = rights(&["send a"], &["send b"]);
    assert!(narrow.cover(&narrow.clone()));
    assert!(rights(&["send a", "look a"], &[]).cover(&narrow));
    assert!(!rights(&["send a"], &["send b", "look c"]).cover(&narrow));
    assert!(!rights(&["look a"], &[]).cover(&narrow));
    assert!(!narrow.clone().until(Some(Nanos(5))).cover(&narrow));
    assert!(narrow.cover(&narrow.clone().until(Some(Nanos(5)))));
    let bob = Rights::new("bob".into(), &[rule("send a")], &[]);
    assert!(!bob.cover(&narrow));
}

#[test]
fn rights_end_with_user_or_token() {
    let rights = rights(&["send a"], &[]).until(Some(Nanos(5)));
    let by_token = |end| rights.by_token_until(Some(Nanos(end)));
    assert_eq!((by_token(4).expires(), by_token(6).expires()), (Some(Nanos(4)), Some(Nanos(5))));
    assert_eq!(rights.by_token_until(None).expires(), Some(Nanos(5)));
    assert!(rights.cover(&by_token(4)) && !by_token(4).cover(&rights));
    assert!(by_token(4).is_same(&by_token(4)) && !by_token(4).is_same(&rights));
}
