//! Users files: those that are read, and the faults of others.

use std::format;
use std::string::{String, ToString as _};

use model::{Quota, Secret};

use super::*;

fn verifier(hash: ScramHash) -> String {
    Verifier::derive(hash, &Secret::from(&b"pencil"[..]), b"0123456789abcdef").text()
}

fn problems(text: &str) -> String {
    Users::parse(text).map(|_| ()).unwrap_err().to_string()
}

const SHA: &str = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";

#[test]
fn users_file_is_read() {
    let (sha_256, sha_512) = (verifier(ScramHash::Sha256), verifier(ScramHash::Sha512));
    let text = format!(
        "anonymous = \"guest\"\n\
         decoy-key = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
         [users.orders]\nscram-sha-256 = \"{sha_256}\"\nscram-sha-512 = \"{sha_512}\"\n\
         certificates = [\"SAN:URI:spiffe://corp/orders\", \"CN=orders\"]\n\
         expires = 2027-01-01\n\
         [users.guest]\ndisabled = true\n[users.\"größe\"]\n\
         [tokens]\nci = {{ sha256 = \"{SHA}\", user = \"orders\", \
         expires = 2026-02-01T12:00:00Z }}\n"
    );
    let users = Users::parse(&text).unwrap();
    let names: Vec<_> = users.iter().map(|user| &**user.name()).collect();
    assert_eq!(names, ["größe", "guest", "orders"]);
    let orders = users.user("orders").unwrap();
    let end = Nanos::of_rfc3339("2027-01-01T00:00:00.000Z").unwrap();
    assert_eq!(orders.expires(), Some(end));
    assert!(orders.has_password() && orders.is_active(Nanos(end.0 - 1)) && !orders.is_active(end));
    assert_eq!(orders.certificates().len(), 2);
    assert_eq!(
        users.of_certificate(&["CN=x".into(), "CN=orders".into()]).unwrap().name(),
        orders.name()
    );
    assert!(users.of_certificate(&["cn=orders".into()]).is_none());
    assert!(users.user("guest").unwrap().is_disabled() && users.anonymous() == Some("guest"));
    let token_end = Nanos::of_rfc3339("2026-02-01T12:00:00.000Z").unwrap();
    assert!(users.of_token(&token_digest(b"foo"), Nanos(token_end.0 - 1)).is_some());
    assert!(
        users.of_token(&token_digest(b"foo"), token_end).is_none()
            && users.of_token(&token_digest(b"fo"), Nanos::ZERO).is_none()
    );
    assert!(users.decoy_key().is_some());
    assert!(Users::parse("").unwrap().iter().next().is_none());
}

#[test]
fn faults_name_line_key_and_mend() {
    let good = verifier(ScramHash::Sha256);
    for (text, told) in [
        ("[users", "line 1: this is no TOML"),
        ("[users.a]\n[users.a]", "line 2: this is no TOML"),
        ("users = 1", "line 1: users is of type integer, not a table"),
        ("[users]\na = 1", "line 2: users.a is of type integer, not a table"),
        ("\n[users.\"a b\"]", "line 2: users.a b: the name holds a space"),
        ("[users.\"a\\nb\"]", "line 1: users.a\\nb: the name holds a space"),
        ("[users.a]\npassword = \"x\"", "line 2: users.a.password is no key that is known here"),
        ("[users.a]\nallow = [\"read *\"]", "line 2: users.a.allow: \"read\" is no right"),
        ("[users.a]\ndeny = \"send *\"", "line 2: users.a.deny is of type string, not a list"),
        ("[users.a]\nallow = [1]", "line 2: users.a.allow is of type integer, not a text"),
        ("[users.a]\nlimits = 1", "line 2: users.a.limits is of type integer, not a table"),
        ("[users.a]\nlimits = {speed = 1}", "line 2: users.a.limits.speed is no limit of users:"),
        ("[limits]\nbytes = '1X'", "line 2: limits.bytes: \"1X\": bytes is a number, also with K"),
        ("[limits]\nlinks = true", "line 2: limits.links is of type boolean, not a number or"),
        ("[limits]\nlinks = -1", "line 2: limits.links: \"-1\": links is a number"),
        ("[users.a]\ngroups = [\"b\"]", "line 2: users.a.groups: there is no group b"),
        ("[groups.b]\nallow = [\"send\"]", "line 2: groups.b.allow: send of which names?"),
        ("[groups.b]\ngroups = []", "line 2: groups.b.groups is no key"),
        ("[groups.\"\"]", "line 1: groups.: the name"),
        ("[users.a]\ndisabled = \"yes\"", "line 2: users.a.disabled is of type string, not true"),
        ("[users.a]\nexpires = \"2027-01-01\"", "line 2: users.a.expires is no date such as"),
        ("[users.a]\nexpires = 2027-01-01T00:00:00", "line 2: users.a.expires is no date such as"),
        ("[users.a]\nexpires = 1969-01-01", "line 2: users.a.expires is no date such as"),
        ("[users.a]\nscram-sha-256 = \"x\"", "line 2: users.a.scram-sha-256 is not ITERATIONS$"),
        ("[users.a]\ncertificates = [\"x\"]", "line 2: users.a.certificates: x does not name"),
        ("[users.a]\ncertificates = [\"CN=\"]", "line 2: users.a.certificates: CN= does not name"),
        ("[users.a]\nunix-users = [\"a b\"]", "line 2: users.a.unix-users: a b is no user of the"),
        (
            "[users.a]\nunix-users = [\"4294967295\"]",
            "line 2: users.a.unix-users: 4294967295 is no",
        ),
        ("[users.a]\nunix-users = [7]", "line 2: users.a.unix-users is of type integer, not a"),
        ("anonymous = \"a\"", "line 1: anonymous: there is no user a: add or choose one"),
        ("decoy-key = \"x\"", "line 1: decoy-key is not 32 bytes in base64"),
        ("[tokens]\na = {}", "line 2: tokens.a: sha256 is missing"),
        ("jwt = 1", "line 1: jwt is of type integer, not a table"),
        ("[jwt]\naudience = \"\"", "line 1: jwt: issuer is missing: add it\n"),
        ("[jwt]\nissuer = 1", "line 1: jwt: audience is missing"),
        ("[[jwt]]\n[[jwt]]\nalgorithms = []", "line 1: jwt[0]: issuer is missing"),
        ("jwt = [1]", "line 1: jwt[0] is of type integer, not a table"),
        ("[tokens.a]\nsha256 = \"AB\"\nuser = \"x\"", "line 2: tokens.a.sha256 is not 64"),
    ] {
        let found = problems(text);
        assert!(found.starts_with(told), "{text:?}: {found}");
    }
    let found =
        problems("[users.a]\ncertificates = [\"CN=x\"]\n[users.b]\ncertificates = [\"CN=x\"]");
    assert_eq!(found, "line 4: users.b.certificates: CN=x is of user a as well: remove one");
    let found = problems(&format!("[users.a]\nscram-sha-512 = \"{good}\""));
    assert!(found.contains("without scram-sha-256") && found.contains("another length"), "{found}");
    assert!(!found.contains(&good), "no verifier is shown: {found}");
    let token = format!("{{ sha256 = \"{SHA}\", user = \"a\" }}");
    let found = problems(&format!("[users.a]\n[tokens]\nx = {token}\ny = {token}"));
    assert!(found.starts_with("line 4: tokens.y: another token has the same sha256"), "{found}");
}

#[test]
fn faults_of_issuers_are_told() {
    let good = "issuer = \"i\"\naudience = \"a\"\njwks-file = \"f\"\n";
    let users = Users::parse(&format!("[[jwt]]\n{good}user-claim = \"name\"\n")).unwrap();
    let [issuer] = users.issuers() else { panic!("there is one") };
    assert_eq!((issuer.name(), issuer.keys_file()), ("i", "f"));
    for (more, told) in [
        ("algorithms = [\"none\"]", "line 5: jwt.algorithms is no key that is known here"),
        ("user-claim = \"\"", "line 5: jwt.user-claim is empty, has more than 1024 bytes"),
        ("user-claim = \"a\\nb\"", "line 5: jwt.user-claim is empty"),
        ("subjects = 1", "line 5: jwt.subjects is of type integer, not a table"),
        ("subjects = { x = \"eve\" }", "line 5: jwt.subjects.x: there is no user eve"),
    ] {
        let found = problems(&format!("[jwt]\n{good}{more}"));
        assert!(found.starts_with(told), "{more}: {found}");
    }
    let long = "x".repeat(limits::CLAIM_BYTES_MAX + 1);
    let found = problems(&format!("[jwt]\n{}", good.replace("\"a\"", &format!("\"{long}\""))));
    assert!(found.starts_with("line 3: jwt.audience is empty, has more"), "{found}");
    let found = problems(&format!("[[jwt]]\n{good}[[jwt]]\n{good}"));
    assert!(found.starts_with("line 5: jwt[1]: another table has the same issuer"), "{found}");
}

#[test]
fn limits_of_issuers_are_refused() {
    let issuers = |count: usize| -> String {
        let rest = "audience = \"a\"\njwks-file = \"f\"\n";
        let table = |n| format!("[[jwt]]\nissuer = \"{n}\"\n{rest}");
        (0..count).map(table).collect()
    };
    let most = limits::JWT_ISSUERS_MAX;
    assert_eq!(Users::parse(&issuers(most)).unwrap().issuers().len(), most);
    assert!(problems(&issuers(most + 1)).contains("jwt: 17 issuers are too many, 16 may be"));
    let subjects: String =
        (0..=limits::JWT_SUBJECTS_MAX).map(|n| format!("s{n} = \"u\"\n")).collect();
    let found = problems(&format!("[users.u]\n{}[jwt.subjects]\n{subjects}", issuers(0)));
    assert!(found.contains("10001 subjects are too many, 10000 may be"), "{found}");
    let path = "x".repeat(limits::JWKS_PATH_BYTES_MAX + 1);
    let found = problems(&issuers(1).replace("\"f\"", &format!("\"{path}\"")));
    assert!(found.contains("jwks-file is empty, has more than 4096 bytes"), "{found}");
}

#[test]
fn faults_are_told_together() {
    let found = Users::parse("a = 1\n[users.x]\nb = 2\n[users.y]\nc = 3").unwrap_err();
    let lines: Vec<_> = found.0.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [1, 3, 5]);
    let many: String = (0..1_000).map(|number| format!("k{number} = 1\n")).collect();
    assert_eq!(Users::parse(&many).unwrap_err().0.len(), limits::PROBLEMS_MAX);
}

#[test]
fn limits_of_a_file_are_refused() {
    let users = |count: usize| -> String {
        (0..count).map(|number| format!("[users.u{number}]\n")).collect()
    };
    assert_eq!(Users::parse(&users(limits::USERS_MAX)).unwrap().iter().count(), limits::USERS_MAX);
    let found = problems(&users(limits::USERS_MAX + 1));
    assert!(found.contains("10001 users are too many, 10000 may be"), "{found}");
    let tokens: String =
        (0..=limits::TOKENS_MAX).map(|number| format!("t{number} = 1\n")).collect();
    let found = problems(&format!("[tokens]\n{tokens}"));
    assert!(found.contains("10001 tokens are too many, 10000 may be"), "{found}");
    let certificates = "\"CN=a\", ".repeat(limits::USER_CERTIFICATES_MAX + 1);
    let found = problems(&format!("[users.a]\ncertificates = [{certificates}]"));
    assert!(found.contains("at most 64 certificates"), "{found}");
    let unix_users = "\"1\", ".repeat(limits::USER_UNIX_USERS_MAX + 1);
    let found = problems(&format!("[users.a]\nunix-users = [{unix_users}]"));
    assert!(found.contains("64 may be at most"), "{found}");
    let found = problems(&format!("[users.a]\nunix-users = [\"{}\"]", "x".repeat(257)));
    assert!(found.contains("is no user of the system"), "{found}");
    let found = problems(&"#".repeat(limits::USERS_FILE_BYTES_MAX + 1));
    assert!(found.contains("more than 16777216 bytes"), "{found}");
    let found = problems(&format!("[users.{}]", "x".repeat(129)));
    assert!(found.contains("longer than 128 bytes"), "{found}");
    let deep = format!("x = {}", "[".repeat(100_000));
    assert!(problems(&deep).starts_with("line 1"));
}

#[test]
fn rights_are_those_of_user_and_groups() {
    let text = "[groups.workers]\nallow = [\"receive jobs.*\"]\ndeny = [\"receive jobs.audit\"]\n\
                [users.ann]\ngroups = [\"workers\"]\nallow = [\"send {user}.*\"]\n\
                [users.bob]\n";
    let users = Users::parse(text).unwrap();
    let on = |user: &str, name: &str| users.user(user).unwrap().rights().on(name, None);
    assert_eq!(on("ann", "jobs.a"), model::Right::Receive.into());
    assert!(on("ann", "jobs.audit").is_empty());
    assert_eq!(on("ann", "ann.a"), model::Right::Send.into());
    assert!(on("ann", "bob.a").is_empty() && on("bob", "jobs.a").is_empty());
}

#[test]
fn rule_names_database_by_character() {
    let text = r#"[users.ann]
allow = ["send,receive \uF101mail*"]
[users.bob]
allow = ["send,receive mail*"]
"#;
    let users = Users::parse(text).unwrap();
    let on = |user: &str, name: &str| users.user(user).unwrap().rights().on(name, None);
    assert!(on("bob", "\u{f101}mail").is_empty() && on("ann", "mail").is_empty());
    assert_eq!(on("ann", "\u{f101}mail.a"), on("bob", "mail.a"));
    assert!(!on("bob", "mail.a").is_empty() && on("ann", "\u{f102}mail").is_empty());
}

#[test]
fn rules_of_groups_count_for_each_user() {
    let rules = "\"send a\", ".repeat(model::rights_limits::USER_RULES_MAX);
    let group = format!("[groups.g]\nallow = [{rules}]\n[users.a]\ngroups = [\"g\"]\n");
    assert!(Users::parse(&group).is_ok());
    let found = problems(&format!("{group}allow = [\"send b\"]\n"));
    assert!(found.contains("users.a: 1001 rules"), "{found}");
    let groups: String = (0..=limits::GROUPS_MAX).map(|it| format!("[groups.g{it}]\n")).collect();
    assert!(problems(&groups).contains("1001 groups are too many"));
}

#[test]
fn users_quotas_stand_before_common_ones() {
    let common = "[limits]\nqueues = 1_0\nlinks = 0x10\nbytes = '1K'\n";
    let text = format!("{common}[users.a]\nlimits = {{ bytes = '2G' }}\n[users.b]\n");
    let users = Users::parse(&text).unwrap();
    let quotas = |name: &str| users.user(name).unwrap().rights().quotas().clone();
    let (a, b) = (quotas("a"), quotas("b"));
    assert_eq!((a.of(Quota::Bytes), a.of(Quota::Queues)), (Some(2 << 30), Some(10)));
    assert_eq!((b.of(Quota::Bytes), b.of(Quota::Links)), (Some(1 << 10), Some(16)));
}

#[test]
fn unix_users_are_names_or_numbers() {
    let text = "[users.a]\nunix-users = [\"www-data\", \"1001\"]\n[users.b]\nunix-users = [\"0\"]";
    let users = || Users::parse(text).unwrap();
    assert!(users().of_unix_user(1001).is_none(), "none is before they are looked up");
    let known = |name: &str| (name == "www-data").then_some(33);
    let resolved = users().resolve_unix_users(known).unwrap();
    let name = |number| resolved.of_unix_user(number).map(|user| &**user.name());
    assert_eq!([33, 1001, 0, 34].map(name), [Some("a"), Some("a"), Some("b"), None]);
    assert_eq!(resolved.unix_user_numbers().collect::<Vec<_>>(), [0, 33, 1001]);
    let unknown = users().resolve_unix_users(|_| None).unwrap_err().to_string();
    assert!(unknown.starts_with("line 2: users.a.unix-users: www-data is no user in"), "{unknown}");
    let shared = users().resolve_unix_users(|_| Some(0)).unwrap_err().to_string();
    assert_eq!(shared, "line 4: users.b.unix-users: 0 is of user a as well: remove one");
}
