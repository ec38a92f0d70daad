//! Clients of a broker that has users: each protocol, what strangers may do, and files that change.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::common::line::{Line, PATIENCE};
use crate::common::{Directory, memory, start, users_file};
use access::Verifier;
use amqp::frame::{self, FrameKind};
use amqp::sasl::SaslBody;
use amqp::types::Symbols;
use model::{ScramHash, Secret};
use server::{AuditTarget, Config, Listen, Protocol, Running, Server, StartError, UsersError};

/// A file with users of these names and passwords, readable by its owner only.
fn users(directory: &Directory, all: &[(&str, &str)]) -> PathBuf {
    let user = |(name, password): &(&str, &str)| {
        let password = Secret::from(password.as_bytes());
        let [one, other] = [ScramHash::Sha256, ScramHash::Sha512]
            .map(|hash| Verifier::derive(hash, &password, b"salt of a test").text());
        let rules = "allow = [\"send,receive,look,manage,operate *\"]\n";
        format!("[users.{name}]\nscram-sha-256 = \"{one}\"\nscram-sha-512 = \"{other}\"\n{rules}")
    };
    users_file(directory, &all.iter().map(user).collect::<String>())
}

/// The same, each user with rules of its own, as TOML says them.
fn users_with(directory: &Directory, all: &[(&str, &str)]) -> PathBuf {
    let names: Vec<_> = all.iter().map(|(name, _)| (*name, "correct-horse")).collect();
    let text = std::fs::read_to_string(users(directory, &names)).unwrap();
    let mut rules = all.iter().map(|(_, rules)| *rules);
    let line = |line: &str| match line.starts_with("allow") {
        true => rules.next().unwrap().to_owned() + "\n",
        false => line.to_owned() + "\n",
    };
    users_file(directory, &text.lines().map(line).collect::<String>())
}

fn listen(protocol: Protocol) -> Listen {
    Listen::tcp(protocol, SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn with_users(file: PathBuf) -> Config {
    Config { listen: Protocol::ALL.map(listen).to_vec(), users: Some(file), ..memory() }
}

#[test]
fn redis_clients_log_in() {
    let directory = Directory::new("logins-redis");
    let server = start(with_users(users(&directory, &[("orders", "correct horse")])));
    let mut line = Line::to(&server, Protocol::Redis);
    line.ask("PING\r\n", "-NOAUTH Authentication required.\r\n");
    line.ask("LPUSH l 1\r\n", "-NOAUTH Authentication required.\r\n");
    let good = "*3\r\n$4\r\nAUTH\r\n$6\r\norders\r\n$13\r\ncorrect horse\r\n";
    let mut line = Line::to(&server, Protocol::Redis);
    // Commands behind it wait for the login.
    line.ask(format!("{good}LPUSH l 1\r\nACL WHOAMI\r\n"), "+OK\r\n:1\r\n$6\r\norders\r\n");
    line.ask("RESET\r\nPING\r\n", "+RESET\r\n-NOAUTH Authentication required.\r\n");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    line.ask("AUTH orders wrong-password\r\n", wrong);
}

/// As after the restart of a broker: all come at once.
#[test]
fn hundreds_log_in_at_once() {
    let directory = Directory::new("logins-many");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let log_in = "AUTH orders correct-horse\r\n";
    Line::to(&server, Protocol::Redis).ask(log_in, "+OK\r\n");
    let mut lines: Vec<_> = (0..400).map(|_| Line::to(&server, Protocol::Redis)).collect();
    lines.iter_mut().for_each(|line| line.0.write_all(log_in.as_bytes()).unwrap());
    lines.iter_mut().for_each(|line| line.hear("+OK\r\n"));
}

#[test]
fn beanstalkd_clients_log_in() {
    let directory = Directory::new("logins-beanstalkd");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let mut line = Line::to(&server, Protocol::Beanstalkd);
    line.ask("put 0 0 60 2\r\n", "DENIED\r\n");
    line.end();
    let mut line = Line::to(&server, Protocol::Beanstalkd);
    line.ask("auth orders correct-horse\r\nput 0 0 60 2\r\nhi\r\n", "OK\r\nINSERTED 1\r\n");
}

#[test]
fn amqp_peers_log_in() {
    const HEADER: &[u8] = b"AMQP\x03\x01\0\0";
    let directory = Directory::new("logins-amqp");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let sasl = |body: SaslBody<'_>| {
        let mut out = Vec::new();
        frame::write(&mut out, FrameKind::Sasl, 0, |out| body.encode(out));
        out
    };
    let offered = ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"];
    for (password, code, is_good) in [("correct-horse", 0, true), ("wrong-password", 1, false)] {
        let mut line = Line::to(&server, Protocol::Amqp);
        line.ask(HEADER, HEADER);
        line.hear(sasl(SaslBody::Mechanisms(Symbols::from(offered))));
        let response = format!("\0orders\0{password}");
        let init = SaslBody::Init {
            mechanism: "PLAIN",
            initial_response: Some(response.as_bytes()),
            hostname: None,
        };
        line.0.write_all(&sasl(init)).unwrap();
        let code = if code == 0 { amqp::sasl::SaslCode::Ok } else { amqp::sasl::SaslCode::Auth };
        line.hear(sasl(SaslBody::Outcome { code, additional_data: None }));
        if is_good {
            line.ask(b"AMQP\0\x01\0\0", b"AMQP\0\x01\0\0");
        } else {
            line.end();
        }
    }
    // Without a layer of SASL the peer names no user.
    let mut line = Line::to(&server, Protocol::Amqp);
    line.ask(b"AMQP\0\x01\0\0", HEADER);
    line.end();
}

#[test]
fn http_clients_log_in() {
    let directory = Directory::new("logins-http");
    let server = start(with_users(users(&directory, &[("orders", "correct-horse")])));
    let get =
        |path: &str, login: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{login}\r\n");
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", ""), "HTTP/1.1 401 Unauthorized\r\n");
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/health", ""), "HTTP/1.1 200 OK\r\n");
    // `orders:correct-horse`
    let good = "Authorization: Basic b3JkZXJzOmNvcnJlY3QtaG9yc2U=\r\n";
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", good), "HTTP/1.1 200 OK\r\n");
    let wrong = "Authorization: Basic b3JkZXJzOndyb25nLXBhc3N3b3Jk\r\n";
    let mut line = Line::to(&server, Protocol::Http);
    line.ask(get("/queues", wrong), "HTTP/1.1 401 Unauthorized\r\n");
}

#[test]
fn changed_users_log_in() {
    let directory = Directory::new("logins-reload");
    let file = users(&directory, &[("old", "correct-horse")]);
    let server = start(with_users(file.clone()));
    let log_in = |user: &str, answer: &str| {
        let mut line = Line::to(&server, Protocol::Redis);
        line.ask(format!("AUTH {user} correct-horse\r\n"), answer);
        line
    };
    let old = log_in("old", "+OK\r\n");
    users(&directory, &[("new", "correct-horse")]);
    server.remote().reload();
    log_in("new", "+OK\r\n");
    // A user that is none any more is cut off.
    old.end();
    // A broken file changes nothing.
    std::fs::write(&file, "[users.").unwrap();
    server.remote().reload();
    log_in("new", "+OK\r\n");
    log_in("old", "-WRONGPASS");
}

#[test]
fn unusable_users_files_are_refused() {
    let directory = Directory::new("logins-files");
    let refusal = |file: &PathBuf| Server::start(with_users(file.clone())).err().unwrap();
    let file = users(&directory, &[("orders", "correct-horse")]);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let error = refusal(&file);
    assert!(matches!(error, StartError::Users(UsersError::File(_))), "{error}");
    assert!(error.to_string().contains("600"), "{error}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&file, "[users.orders]\nadmin = true\n").unwrap();
    let error = refusal(&file);
    assert!(error.to_string().contains("admin"), "{error}");
    let absent = directory.0.join("absent.toml");
    assert!(refusal(&absent).to_string().contains("absent.toml"));
}

#[test]
fn exposed_listeners_need_tls_beside_users() {
    let directory = Directory::new("logins-exposed");
    let file = users(&directory, &[("orders", "correct-horse")]);
    let exposed = |by_tls| {
        let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listen = Listen { by_tls, ..Listen::tcp(Protocol::Redis, address) };
        Config { listen: vec![listen], ..with_users(file.clone()) }
    };
    let error = Server::start(exposed(false)).err().unwrap();
    assert!(matches!(error, StartError::Insecure { .. }), "{error}");
    // It has all that it needs but a certificate.
    let error = Server::start(exposed(true)).err().unwrap();
    assert!(matches!(error, StartError::NoCertificate { .. }), "{error}");
}

#[test]
fn changed_rights_hold_for_open_connections() {
    let directory = Directory::new("logins-rights");
    let log_in = |server: &Running, user: &str| {
        let mut line = Line::to(server, Protocol::Redis);
        line.ask(format!("AUTH {user} correct-horse\r\n"), "+OK\r\n");
        line
    };
    let all = |ann| [("ann", ann), ("bob", "allow = [\"send,look b\"]")];
    let file = users_with(&directory, &all("allow = [\"send,look a\"]"));
    let server = start(with_users(file));
    let mut ann = log_in(&server, "ann");
    ann.ask("LPUSH a x\r\n", ":1\r\n");
    ann.ask("LPUSH b x\r\n", "-NOPERM user ann may not send here: b");
    ann.hear(" (an operator can allow it: dunlin user grant)\r\n");
    ann.ask("CLIENT LIST\r\n", "-NOPERM User ann has no permissions to run the 'client|list'");
    ann.hear(" command\r\n");
    // More rights hold from the next command on.
    users_with(&directory, &all("allow = [\"send,look a\", \"operate\", \"send b\"]"));
    server.remote().reload();
    let mut bob = log_in(&server, "bob");
    ann.ask("LPUSH b x\r\n", ":1\r\n");
    bob.ask("LLEN b\r\n", ":1\r\n");
    // One right less ends what could lean on it.
    users_with(&directory, &all("allow = [\"send,look a\", \"send b\"]"));
    server.remote().reload();
    ann.end();
    bob.ask("LLEN b\r\n", ":1\r\n");
    // RESET makes a stranger, who may do nothing.
    bob.ask("RESET\r\n", "+RESET\r\n");
    bob.ask("LLEN b\r\n", "-NOAUTH");
}

#[test]
fn rights_hold_in_every_protocol() {
    let directory = Directory::new("logins-doors");
    let root = "allow = [\"send,receive,look,manage,operate *\"]";
    let ann = "allow = [\"send,receive,look,manage mine*\"]";
    let file = users_with(&directory, &[("root", root), ("ann", ann)]);
    let server = start(with_users(file));
    let authorization = |user: &str| {
        // The name, a colon and `correct-horse`.
        let pair =
            if user == "root" { "cm9vdDpjb3JyZWN0LWhvcnNl" } else { "YW5uOmNvcnJlY3QtaG9yc2U=" };
        format!("Host: localhost\r\nAuthorization: Basic {pair}\r\n")
    };
    let http = |user: &str, request: &str, body: &str| {
        let mut line = Line::to(&server, Protocol::Http);
        let head = authorization(user);
        let length = body.len();
        let text = format!(
            "{request} HTTP/1.1\r\n{head}Content-Length: {length}\r\nConnection: close\r\n\r\n\
             {body}"
        );
        line.0.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        line.0.read_to_string(&mut answer).unwrap();
        let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    };
    let mut root = Line::to(&server, Protocol::Redis);
    root.ask("AUTH root correct-horse\r\n", "+OK\r\n");
    root.ask("RPUSH theirs secret\r\n", ":1\r\n");
    root.ask("SET key secret\r\n", "+OK\r\n");

    let mut redis = Line::to(&server, Protocol::Redis);
    redis.ask("AUTH ann correct-horse\r\n", "+OK\r\n");
    for command in [
        "RPUSH theirs x",
        "LPUSHX theirs x",
        "LPOP theirs",
        "BLPOP theirs 1",
        "LRANGE theirs 0 9",
        "LLEN theirs",
        "LINDEX theirs 0",
        "LSET theirs 0 x",
        "LINSERT theirs BEFORE secret x",
        "LREM theirs 0 secret",
        "LTRIM theirs 1 0",
        "LPOS theirs secret",
        "LMOVE theirs mine LEFT LEFT",
        "LMOVE mine theirs LEFT LEFT",
        "RPOPLPUSH theirs mine",
        "LMPOP 1 theirs LEFT",
        "BLMPOP 1 2 mine theirs LEFT",
        "GET key",
        "SET key x",
        "SETNX key x",
        "GETDEL key",
        "DEL key",
        "UNLINK mine theirs",
        "EXISTS theirs",
        "TYPE theirs",
        "TTL key",
        "EXPIRE key 1",
        "PERSIST key",
        "RENAME theirs mine",
        "RENAME mine theirs",
        "WATCH theirs",
        "PUBLISH theirs x",
        "SUBSCRIBE theirs",
        "FLUSHALL",
        "FLUSHDB",
        "CLIENT LIST",
        "CONFIG GET *",
    ] {
        redis.ask(format!("{command}\r\n"), "-NOPERM");
        redis.line();
    }
    redis.ask("KEYS *\r\n", "*0\r\n");
    redis.ask("MULTI\r\nRPUSH mine x\r\nGET key\r\nEXEC\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n-");
    redis.line();
    redis.ask("LLEN mine\r\n", ":0\r\n");
    redis.ask("RPUSH mine x\r\n", ":1\r\n");

    let mut jobs = Line::to(&server, Protocol::Beanstalkd);
    jobs.ask("auth ann correct-horse\r\n", "OK\r\n");
    for command in [
        "put 0 0 1 1\r\nx",
        "use theirs",
        "watch theirs",
        "reserve-with-timeout 0",
        "peek-ready",
        "kick 1",
        "stats-tube theirs",
        "pause-tube theirs 1",
    ] {
        jobs.ask(format!("{command}\r\n"), "DENIED\r\n");
    }
    for command in ["peek 1", "delete 1", "reserve-job 1", "kick-job 1", "stats-job 1"] {
        jobs.ask(format!("{command}\r\n"), "NOT_FOUND\r\n");
    }
    jobs.ask("use mine\r\n", "USING mine\r\n");
    jobs.ask("watch mine\r\n", "WATCHING 2\r\n");
    jobs.ask("list-tubes\r\n", "OK 11\r\n---\n- mine\n\r\n");
    jobs.ask("reserve-with-timeout 0\r\n", "RESERVED 2 1\r\nx\r\n");

    let (status, sent) = http("root", "POST /queues/theirs/messages", "secret");
    assert_eq!(status, 201, "{sent}");
    let (status, leased) = http("root", "GET /queues/theirs/messages?lease=60s", "");
    assert_eq!(status, 200, "{leased}");
    let token = leased.lines().find_map(|line| line.strip_prefix("dunlin-lease: ")).unwrap();
    for (request, body, expected) in [
        ("POST /queues/theirs/messages", "x", 403),
        ("GET /queues/theirs/messages", "", 403),
        ("GET /queues/theirs/messages?browse=true", "", 403),
        ("GET /queues/theirs", "", 403),
        ("DELETE /queues/theirs", "", 403),
        ("POST /queues/theirs/purge", "", 403),
        ("POST /queues/theirs/move?to=mine", "", 403),
        ("POST /queues/mine/move?to=theirs", "", 403),
        ("GET /queues/theirs/policy", "", 403),
        ("PATCH /queues/theirs/policy", "{\"max-messages\":1}", 403),
        ("POST /topics/theirs/messages", "x", 403),
        ("GET /topics/theirs/events", "", 403),
        ("GET /messages/1", "", 404),
        ("GET /metrics", "", 403),
        ("GET /journal", "", 403),
    ] {
        let (status, answer) = http("ann", request, body);
        assert_eq!(status, expected, "{request}: {answer}");
        assert!(!answer.contains("secret"), "{request}: {answer}");
    }
    let accept = format!("DELETE /leases/{token}");
    let (status, answer) = http("ann", &accept, "");
    assert_eq!(status, 410, "{answer}");
    let (status, answer) = http("root", &accept, "");
    assert_eq!(status, 204, "{answer}");
    let (status, listed) = http("ann", "GET /queues", "");
    assert!(status == 200 && !listed.contains("theirs") && listed.contains("mine"), "{listed}");
    // All of it is as it was.
    root.ask("GET key\r\n", "$6\r\nsecret\r\n");
    root.ask("LRANGE theirs 0 9\r\n", "*1\r\n$6\r\nsecret\r\n");
}

#[test]
fn audit_log_tells_who_did_what() {
    let directory = Directory::new("logins-audit");
    let all = [
        ("root", "allow = [\"send,receive,look,manage,operate *\"]"),
        ("ann", "allow = [\"send a\"]"),
    ];
    let file = users_with(&directory, &all);
    let path = directory.0.join("audit.jsonl");
    let audit = Some(AuditTarget::File(path.clone()));
    let server = start(Config { audit, ..with_users(file) });
    let mut ann = Line::to(&server, Protocol::Beanstalkd);
    ann.ask("auth ann correct-horse\r\n", "OK\r\n");
    ann.ask("use secret\r\n", "DENIED\r\n");
    ann.ask("use a\r\n", "USING a\r\n");
    ann.ask("put 0 0 1 6\r\ncanary\r\n", "INSERTED 1\r\n");
    let mut http = Line::to(&server, Protocol::Http);
    // The name, a colon and `correct-horse`.
    let head = "Host: localhost\r\nAuthorization: Basic cm9vdDpjb3JyZWN0LWhvcnNl\r\n";
    let purge = format!("POST /queues/a/purge HTTP/1.1\r\n{head}Content-Length: 0\r\n\r\n");
    http.ask(purge, "HTTP/1.1 200 OK\r\n");
    // Last, for its address has to wait after it.
    let mut ann = Line::to(&server, Protocol::Redis);
    ann.ask("AUTH ann wrong-canary\r\n", "-WRONGPASS");
    ann.line();
    users_with(&directory, &all[..1]);
    server.remote().reload();
    server.shutdown().unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("canary") && !text.contains("correct-horse"), "{text}");
    let fields = ["event", "outcome", "user", "protocol", "name"];
    let of = |line: &serde_json::Value| {
        fields.map(|field| line[field].as_str().unwrap_or_default().to_owned()).join(" ")
    };
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(of).map(|it| it.trim_end().to_owned()).collect();
    assert_eq!(
        told,
        [
            "start done",
            "login granted ann beanstalkd",
            "denied denied ann beanstalkd secret",
            "purge done root http a",
            "login refused ann redis",
            "reload done",
            "user removed ann",
            "stop done",
        ]
    );
    assert!(lines[1]["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{text}");
    assert_eq!(lines[3]["count"], 1);
}

#[test]
fn connection_quota_names_itself() {
    let directory = Directory::new("logins-connections");
    let rules = "allow = [\"send,receive,look *\"]\nlimits = { connections = 2 }";
    let server =
        start(with_users(users_with(&directory, &[("ann", rules), ("bob", "allow = []")])));
    let log_in = "AUTH ann correct-horse\r\n";
    let mut lines: Vec<_> = (0..2).map(|_| Line::to(&server, Protocol::Redis)).collect();
    lines.iter_mut().for_each(|line| line.ask(log_in, "+OK\r\n"));
    // Logging in again as the same user takes no further place.
    lines[0].ask(log_in, "+OK\r\n");
    let mut third = Line::to(&server, Protocol::Redis);
    let refusal = "-ERR user ann has reached the quota connections=2: close some, or an operator \
                   can raise it (dunlin user limit)\r\n";
    third.ask(log_in, refusal);
    third.ask("AUTH bob correct-horse\r\n", "+OK\r\n");
    third.ask(log_in, refusal);
    third.ask("ACL WHOAMI\r\n", "$3\r\nbob\r\n");
    let mut jobs = Line::to(&server, Protocol::Beanstalkd);
    jobs.ask("auth ann correct-horse\r\n", "OUT_OF_MEMORY\r\n");
    let credentials = "YW5uOmNvcnJlY3QtaG9yc2U=";
    let get = format!(
        "GET /queues HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {credentials}\r\n\r\n"
    );
    let mut web = Line::to(&server, Protocol::Http);
    web.ask(&get, "HTTP/1.1 429 ");
    lines.pop();
    // The server finds out in its own time.
    let end = std::time::Instant::now() + PATIENCE;
    while !third.says(log_in).starts_with("+OK") {
        assert!(std::time::Instant::now() < end, "the place is free again");
    }
}

#[test]
fn byte_rate_slows_one_user_alone() {
    let directory = Directory::new("logins-rates");
    let rules = "allow = [\"send,receive,look *\"]\nlimits = { byte-rate = \"64K\" }";
    let free = "allow = [\"send,receive,look *\"]";
    let server = start(with_users(users_with(&directory, &[("ann", rules), ("bob", free)])));
    let [mut slow, mut other] = [(); 2].map(|()| Line::to(&server, Protocol::Redis));
    slow.ask("AUTH ann correct-horse\r\n", "+OK\r\n");
    other.ask("AUTH bob correct-horse\r\n", "+OK\r\n");
    let element = "x".repeat(32 * 1024);
    let push = format!("*3\r\n$5\r\nRPUSH\r\n$1\r\na\r\n${}\r\n{element}\r\n", element.len());
    let begin = std::time::Instant::now();
    let mut writer = slow.0.twin();
    let sent = push.repeat(8);
    let writing = std::thread::spawn(move || writer.write_all(sent.as_bytes()).unwrap());
    // 256 KiB take three seconds beyond the first 64 KiB. The others are served meanwhile.
    for number in 1..=100 {
        other.ask("RPUSH b x\r\n", format!(":{number}\r\n"));
    }
    (1..=8).for_each(|number| slow.hear(format!(":{number}\r\n")));
    writing.join().unwrap();
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
}
