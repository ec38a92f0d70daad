//! `dunlin user`: the users file that it leaves, its output and its exit status.
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::common::{Directory, dunlin, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

const PASSWORD: &str = "correct horse battery";

fn command(directory: &Directory, words: &[&str]) -> Command {
    let mut command = dunlin(directory);
    command.arg("user").args(words).env("DUNLIN_USERS", "users.toml");
    command
}

/// Exit status, standard output, standard error.
fn user(directory: &Directory, words: &[&str]) -> (i32, String, String) {
    let (status, out, err) = run(command(directory, words));
    (status.unwrap(), out, err)
}

/// The output of a command that ends well.
fn says(directory: &Directory, words: &[&str]) -> String {
    let (status, out, err) = user(directory, words);
    assert_eq!(status, 0, "{words:?}: {err}");
    assert!(err.is_empty() || err.contains("may do nothing yet"), "{words:?}: {err}");
    out
}

/// The same with a standard input.
fn fed(directory: &Directory, words: &[&str], input: &str) -> (i32, String) {
    let mut command = command(directory, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A refused command reads nothing.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn file(directory: &Directory) -> String {
    std::fs::read_to_string(directory.0.join("users.toml")).unwrap()
}

/// Writes a users file that only its owner may read.
fn write(directory: &Directory, text: &str) {
    let path = directory.file("users.toml", text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn added_users_are_listed() {
    let directory = Directory::new("user-add");
    let generated = says(&directory, &["add", "orders", "--generate"]);
    assert_eq!(generated.trim_end().len(), 32, "{generated}");
    let hint = "user größe may do nothing yet: dunlin user grant größe 'send,receive QUEUE'\n";
    assert_eq!(fed(&directory, &["add", "größe", "--stdin"], PASSWORD), (0, hint.into()));
    let words =
        ["add", "gateway", "--no-password", "--certificate", "CN=gateway", "--unix-user", "root"];
    says(&directory, &[&words[..], &["--expires", "2001-02-03"]].concat());
    let listed = says(&directory, &["ls", "--json"]);
    let users: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = users.iter().map(|user| user["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["gateway", "größe", "orders"]);
    assert_eq!(users[0]["certificates"][0], "CN=gateway");
    assert_eq!(users[0]["unix-users"][0], "root");
    assert_eq!((&users[0]["password"], &users[0]["state"]), (&false.into(), &"expired".into()));
    assert_eq!(users[0]["expires"], "2001-02-03T00:00:00.000Z");
    assert_eq!((&users[2]["password"], &users[2]["state"]), (&true.into(), &"active".into()));
    assert!(says(&directory, &["ls"]).starts_with("name     state"));
    assert_eq!(says(&directory, &["check"]), "sound: 3 users, 0 tokens\n");
    let metadata = std::fs::metadata(directory.0.join("users.toml")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let text = file(&directory);
    assert!(text.starts_with("decoy-key = ") && text.contains("16384$"), "{text}");
    assert!(!text.contains(generated.trim_end()) && !text.contains(PASSWORD));
    assert_eq!(std::fs::read_dir(&directory.0).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn changes_keep_comments() {
    let directory = Directory::new("user-comments");
    let before = "# Ours\n\n[users.mail] # sends mail\ndisabled = true # for now\n\n# The last\n\
                  [users.audit]\n\n[tokens]\n# none yet\n";
    write(&directory, before);
    assert_eq!(fed(&directory, &["passwd", "mail", "--stdin"], "12345678\r\n").0, 0);
    says(&directory, &["enable", "mail"]);
    says(&directory, &["disable", "audit"]);
    let text = file(&directory);
    for kept in ["# Ours\n", "[users.mail] # sends mail\n", "disabled = false # for now\n"] {
        assert!(text.contains(kept), "{text}");
    }
    assert!(text.contains("# The last\n[users.audit]\ndisabled = true\n"), "{text}");
    assert!(text.contains("[tokens]\n# none yet\n"), "{text}");
    says(&directory, &["rm", "audit"]);
    assert_eq!(says(&directory, &["ls", "--json"]).lines().count(), 1);
}

#[test]
fn tokens_are_shown_once() {
    let directory = Directory::new("user-token");
    says(&directory, &["add", "orders", "--no-password"]);
    let words = ["token", "add", "ci", "--user", "orders", "--expires", "2500-01-01T00:00:00Z"];
    let token = says(&directory, &words);
    assert!(token.starts_with("dunlin_") && token.trim_end().len() == 59, "{token}");
    assert!(!file(&directory).contains(token.trim_end()));
    let listed = says(&directory, &["token", "ls", "--json"]);
    let listed: Value = serde_json::from_str(listed.trim_end()).unwrap();
    assert_eq!((&listed["name"], &listed["user"]), (&"ci".into(), &"orders".into()));
    assert_eq!(listed["state"], "active");
    let (status, _, err) = user(&directory, &words);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("token ci is there already"), "{err}");
    says(&directory, &["token", "rm", "ci"]);
    assert_eq!(user(&directory, &["token", "rm", "ci"]).0, 3);
    says(&directory, &["token", "add", "ci", "--user", "orders"]);
    says(&directory, &["rm", "orders"]);
    assert_eq!(says(&directory, &["check"]), "sound: 0 users, 0 tokens\n");
}

#[test]
fn wrong_changes_are_refused() {
    let directory = Directory::new("user-wrong");
    says(&directory, &["add", "orders", "--no-password", "--certificate", "CN=orders"]);
    let before = file(&directory);
    for (words, input, status, told) in [
        (&["add", "orders", "--generate"][..], "", 1, "user orders is there already"),
        (&["add", "a b", "--generate"], "", 2, "the name of a user may not be so"),
        (&["add", "a", "--stdin"], "short", 2, "has fewer than 8 characters"),
        (&["add", "a", "--stdin"], "two lines\nof text", 2, "cannot be seen or typed"),
        (&["add", "a"], "", 2, "standard input is no terminal"),
        (&["add", "a", "--generate", "--stdin"], "", 2, "cannot be used with"),
        (&["add", "a", "--no-password", "--generate"], "", 2, "cannot be used with"),
        (&["add", "a", "--no-password", "--expires", "soon"], "", 2, "is no date such as"),
        (&["add", "a", "--no-password", "--certificate", "x"], "", 2, "does not name a certif"),
        (&["add", "a", "--no-password", "--unix-user", "a b"], "", 2, "is no user of the system"),
        (&["add", "a", "--no-password", "--certificate", "CN=orders"], "", 2, "is of user a as w"),
        (&["add", "a", PASSWORD], "", 2, "unexpected argument"),
        (&["passwd", "nobody", "--generate"], "", 3, "there is no user nobody"),
        (&["rm", "nobody"], "", 3, "there is no user nobody"),
        (&["disable", "nobody"], "", 3, "there is no user nobody"),
        (&["token", "add", "ci", "--user", "nobody"], "", 3, "there is no user nobody"),
    ] {
        let (code, text) = fed(&directory, words, input);
        assert!(code == status && text.contains(told), "{words:?}: {code}: {text}");
        assert_eq!(file(&directory), before, "{words:?}");
    }
}

#[test]
fn limits_are_set_and_shown() {
    let directory = Directory::new("user-limits");
    says(&directory, &["add", "ann", "--no-password"]);
    says(&directory, &["limit", "ann", "bytes=2G", "links=10"]);
    says(&directory, &["limit", "--all", "links=5", "queues=7"]);
    let shown = says(&directory, &["limit", "ann", "--json"]);
    let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |line: &Value| (line["limit"].as_str().unwrap().to_owned(), line["amount"].as_u64());
    let expected = [("links", 10), ("queues", 7), ("bytes", 2 << 30)];
    let expected = expected.map(|(limit, amount)| (limit.to_owned(), Some(amount)));
    assert_eq!(lines.iter().map(of).collect::<Vec<_>>(), expected);
    says(&directory, &["limit", "ann", "links=none"]);
    assert!(says(&directory, &["limit", "ann"]).contains("links   5"));
    for (words, status, told) in [
        (&["limit", "ann", "links=none"][..], 3, "user ann has no limit links of its own"),
        (&["limit", "bob", "links=1"], 3, "there is no user bob"),
        (&["limit", "bob"], 3, "there is no user bob"),
        (&["limit", "ann", "speed=1"], 2, "there is no limit \"speed\": there are connections"),
        (&["limit", "ann", "links"], 2, "is no limit: write bytes=2G"),
        (&["limit", "ann", "links=1K"], 2, "links is a number"),
        (&["limit"], 2, "NAME|LIMIT=AMOUNT"),
    ] {
        let (found, _, err) = user(&directory, words);
        assert!(found == status && err.contains(told), "{words:?}: {found} {err}");
    }
    says(&directory, &["check"]);
}

#[test]
fn faults_of_the_file_are_told() {
    let directory = Directory::new("user-faults");
    let (status, _, err) = user(&directory, &["check"]);
    assert!(status == 1 && err.contains("cannot open users.toml"), "{err}");
    write(&directory, "[users.a]\nlimits = []\nx = 1\n");
    for words in [&["check"][..], &["ls"], &["rm", "a"], &["passwd", "a", "--generate"]] {
        let (status, out, err) = user(&directory, words);
        assert_eq!((status, out.as_str()), (1, ""), "{err}");
        let faults = "users.toml has faults:\nline 2: users.a.limits is of type array, not a \
                      table\nline 3: users.a.x is no key";
        assert!(err.contains(faults), "{err}");
    }
    write(&directory, "anonymous = \"guest\"\n[users.guest]\n");
    let (status, _, err) = user(&directory, &["rm", "guest"]);
    assert!(status == 1 && err.contains("remove or change the line `anonymous`"), "{err}");
    let path = directory.0.join("users.toml");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for words in [&["check"][..], &["disable", "guest"]] {
        let (status, _, err) = user(&directory, words);
        assert!(status == 1 && err.contains("has mode 0644"), "{err}");
        assert!(err.contains("chmod 600"), "{err}");
    }
}

const PROMPTS: [&str; 2] = ["Password: ", "The same again: "];

/// Types at a terminal; gives the exit status, and all that the terminal showed.
#[test]
fn issuers_and_keys_are_checked() {
    let directory = Directory::new("user-issuers");
    says(&directory, &["add", "orders", "--no-password"]);
    let table = "[[jwt]]\nissuer = \"https://login.example.com\"\naudience = \"dunlin\"\n\
                 jwks-file = \"keys.jwks\" # by a timer\nsubjects = { \"7f:1\" = \"orders\" }\n";
    write(&directory, &format!("{}\n{table}", file(&directory)));
    let (status, _, err) = user(&directory, &["check"]);
    assert!(status != 0 && err.contains("keys.jwks"), "{err}");
    let key = "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"a\",\
               \"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}";
    let keys = directory.file("keys.jwks", &format!("{{\"keys\":[{key}]}}"));
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(says(&directory, &["check"]), "sound: 1 users, 0 tokens, 1 issuer of JWT\n");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(user(&directory, &["check"]).2.contains("chmod go-w"));
    // Changes need no keys, and keep the table.
    says(&directory, &["disable", "orders"]);
    assert!(file(&directory).contains(table));
    let (status, _, err) = user(&directory, &["rm", "orders"]);
    assert!(status != 0 && err.contains("subjects.7f:1: there is no user orders"), "{err}");
}

fn typed(directory: &Directory, words: &[&str], keys: &str) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = command(directory, words);
    command.stdin(slave.try_clone().unwrap()).stderr(slave).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut master = File::from(master);
    let mut shown = Vec::new();
    let mut answers = keys.split_inclusive('\r');
    // Each prompt is answered: what is typed before it is lost, as at any terminal.
    let mut chunk = [0; 256];
    while let Ok(count) = master.read(&mut chunk)
        && count > 0
    {
        shown.extend_from_slice(&chunk[..count]);
        // A message may come in pieces that end like a prompt.
        if PROMPTS.iter().any(|prompt| shown.ends_with(prompt.as_bytes())) {
            master.write_all(answers.next().unwrap().as_bytes()).unwrap();
        }
    }
    (child.wait().unwrap().code().unwrap(), String::from_utf8(shown).unwrap())
}

#[test]
fn typed_password_is_not_shown() {
    let directory = Directory::new("user-typed");
    let keys = "wrong\u{15}12345678x\u{7f}\r12345678\r";
    let (status, shown) = typed(&directory, &["add", "orders", "--allow", "look *"], keys);
    assert_eq!((status, shown.as_str()), (0, "Password: \r\nThe same again: \r\n"));
    let (status, shown) = typed(&directory, &["passwd", "orders"], "12345678\r12345679\r");
    assert!(status == 2 && shown.contains("the two passwords differ"), "{shown}");
    let (status, shown) = typed(&directory, &["passwd", "orders"], "1234\u{3}");
    assert!(status == 1 && shown.contains("no password was given"), "{shown}");
}

#[test]
fn rights_are_granted_and_revoked() {
    let directory = Directory::new("user-rights");
    let words = ["add", "ann", "--generate", "--allow", "send orders.*", "--deny", "send *.audit"];
    says(&directory, &words);
    says(&directory, &["grant", "ann", "look *", "operate"]);
    says(&directory, &["grant", "ann", "look *"]);
    says(&directory, &["grant", "--group", "workers", "receive {user}.jobs"]);
    says(&directory, &["grant", "--group", "workers", "--deny", "look secret"]);
    says(&directory, &["join", "ann", "workers"]);
    let rules = says(&directory, &["rights", "ann"]);
    for rule in
        ["allow  send orders.*", "allow  operate", "allow  receive ann.jobs", "deny   look secret"]
    {
        assert!(rules.contains(rule), "{rule}: {rules}");
    }
    assert_eq!(rules.matches("look *").count(), 1, "{rules}");
    let on = |name| says(&directory, &["rights", "ann", name, "--json"]);
    assert!(on("orders.eu").contains(r#"{"allowed":true,"right":"send"}"#), "{}", on("orders.eu"));
    assert!(on("orders.audit").contains(r#"{"allowed":false,"right":"send"}"#));
    assert!(on("secret").contains(r#"{"allowed":false,"right":"look"}"#));
    says(&directory, &["revoke", "ann", "look *"]);
    let (status, _, err) = user(&directory, &["revoke", "ann", "look *"]);
    assert!(status == 3 && err.contains("has no rule to allow 'look *'"), "{err}");
    says(&directory, &["leave", "ann", "workers"]);
    assert!(!says(&directory, &["rights", "ann"]).contains("jobs"));
    for (words, status, why) in [
        (&["grant", "ann", "read *"][..], 2, "\"read\" is no right"),
        (&["grant", "bob", "look *"], 3, "there is no user bob"),
        (&["join", "ann", "nobody"], 3, "there is no group nobody"),
        (&["leave", "ann", "workers"], 3, "is not in group workers"),
        (&["rights", "bob"], 3, "there is no user bob"),
        (&["add", "eve", "--no-password", "--allow", "send"], 2, "of which names?"),
        (&["add", "eve", "--no-password", "--group", "none"], 2, "there is no group none"),
    ] {
        let (found, _, err) = user(&directory, words);
        assert!(found == status && err.contains(why), "{words:?}: {found} {err}");
    }
    assert_eq!(says(&directory, &["check"]), "sound: 1 users, 0 tokens\n");
}
