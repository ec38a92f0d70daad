//! A Dunlin as operators expose it: it listens by TLS, and its clients have to log in.
//!
//! A root certificate of its own signs the server's. All users have one password: `ann` may use
//! names that begin with `ann.` and receive from temporary queues, `root` may do all. `eve-1` and
//! so on may do nothing: each test of a wrong password takes one for itself, since a failure delays
//! the next login of the same user.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Result;
use crate::issuer;
use crate::server::{Dunlin, Program, Server};
use crate::steps::Bench;

/// The password of all users.
const PASSWORD: &str = "correct horse battery staple";

/// The users and their rules.
const USERS: [(&str, &[&str]); 6] = [
    ("ann", &["send,receive,look ann.*", "receive temporary/*"]),
    ("root", &["send,receive,look,manage,operate *"]),
    ("eve-1", &[]),
    ("eve-2", &[]),
    ("eve-3", &[]),
    ("eve-4", &[]),
];

/// The files of such a server: certificates, and the users with two tokens of `ann`.
pub(crate) struct Secured {
    binary: PathBuf,
    folder: PathBuf,
    /// One of the users file.
    token: String,
    /// One that an issuer has signed.
    jwt: String,
}

impl Secured {
    /// Makes the files in a folder of `bench`, anew.
    ///
    /// # Errors
    /// When `openssl` or `dunlin user` fails.
    pub(crate) fn new(bench: &Bench) -> Result<Secured> {
        let (binary, folder) = (bench.dunlin()?, bench.scratch.join("secured"));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        issue(&folder, "root", &["-subj", "/CN=Dunlin's tests"])?;
        let server = [
            ["-subj", "/CN=localhost"],
            ["-addext", "subjectAltName=DNS:localhost"],
            ["-addext", "basicConstraints=critical,CA:FALSE"],
            ["-CA", "root.pem"],
            ["-CAkey", "root.key"],
        ];
        issue(&folder, "server", server.as_flattened())?;
        let mut secured = Secured { binary, folder, token: String::new(), jwt: String::new() };
        for (name, rules) in USERS {
            secured.add_user(name, rules)?;
        }
        let token = secured.run_user(&["token", "add", "ci", "--user", "ann"])?;
        secured.token = token.split_whitespace().last().ok_or("no token was printed")?.to_owned();
        secured.jwt = issuer::issue_token(&secured.folder, "ann")?;
        let mut users = OpenOptions::new().append(true).open(secured.path("users.toml"))?;
        users.write_all(issuer::table().as_bytes())?;
        Ok(secured)
    }

    /// Starts a server for this protocol, `rediss` or another one with TLS. Its log is appended to
    /// `log`.
    ///
    /// # Errors
    /// As [`Program::start`].
    pub(crate) fn start(&self, protocol: &'static str, log: &Path) -> Result<Server> {
        let [certificate, key, users] =
            ["server.pem", "server.key", "users.toml"].map(|name| self.path(name));
        let options = ["--store", "none", "--tls-cert", &certificate, "--tls-key", &key, "--users"];
        let options = options.into_iter().chain([&*users]).map(str::to_owned).collect();
        let binary = self.binary.clone();
        let variables = Vec::new();
        Program::Dunlin(Dunlin { binary, protocol, options, variables }).start(log)
    }

    /// Waits until the server is ready, and tells `client` by variables how to reach it.
    ///
    /// # Errors
    /// As [`Server::wait_ready`].
    pub(crate) fn tell(&self, client: &mut Command, server: &mut Server) -> Result<()> {
        // The certificate is for this name.
        client.env("SECURED_ADDR", format!("localhost:{}", server.wait_ready()?.port()));
        client.env("SECURED_CA", self.path("root.pem"));
        client.env("SECURED_PASSWORD", PASSWORD).env("SECURED_TOKEN", &self.token);
        client.env("SECURED_JWT", &self.jwt);
        Ok(())
    }

    fn add_user(&self, name: &str, rules: &[&str]) -> Result<()> {
        let mut arguments = vec!["add", name, "--stdin"];
        arguments.extend(rules.iter().flat_map(|rule| ["--allow", rule]));
        self.run_user(&arguments).map(drop)
    }

    /// Runs `dunlin user`, gives the password to it, and gives what it printed.
    fn run_user(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.arg("user").args(arguments).args(["--users", &self.path("users.toml")]);
        let output = output(&mut command, PASSWORD)?;
        Ok(String::from_utf8(output.stdout)?)
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

/// Makes `NAME.pem` and `NAME.key` in the folder: a root's, unless `arguments` say otherwise.
fn issue(folder: &Path, name: &str, arguments: &[&str]) -> Result<()> {
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let files = ["-nodes", "-days", "30", "-keyout", &key, "-out", &certificate];
    openssl(folder, &[&request[..], arguments, &files].concat()).map(drop)
}

/// Runs `openssl` in the folder, and gives what it printed.
pub(crate) fn openssl(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(arguments);
    Ok(output(&mut command, "")?.stdout)
}

/// Runs a program to its end with a line of input.
fn output(command: &mut Command, input: &str) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that reads nothing may have ended already.
        let _ = writeln!(stdin, "{input}");
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {said}", command.get_program().display()).into())
}
