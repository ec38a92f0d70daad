//! The files in `testdata/scripts`: commands of clients to sessions with an engine behind them,
//! then `----`, and the answers of each. `UPDATE=1` writes the answers of today; read the
//! difference.
//!
//! Each script also runs with its input cut into pieces of many sizes: that must change nothing.

use std::fmt::Write as _;
use std::path::Path;

use model::{LoginOffer, Nanos, StorePolicy};
use resp::{Options, Side};
use testkit::{escape, scripts};

use crate::ours::Ours;

#[test]
fn scripts_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scripts");
    scripts::check_all(&folder, 7, |script| run(script, usize::MAX));
    for (path, script) in scripts::read_all(&folder, 7) {
        for size in [1, 2, 3, 5, 8, 13, 100] {
            assert_eq!(run(&script, size), script, "{} in pieces of {size}", path.display());
        }
    }
}

/// Repeats the script with its results.
fn run(script: &str, size: usize) -> String {
    let mut player = Player { ours: Ours::new(Options::default()), size };
    scripts::repeat(script, |lines| {
        lines.iter().for_each(|line| player.obey(line));
        player.heard()
    })
}

/// Clients are numbered from 1; each connects when it is named first.
struct Player {
    ours: Ours,
    /// The size of the pieces in which bytes arrive.
    size: usize,
}

impl Player {
    /// `1 PING` sends a line, `1 <bytes` just these, `wait 5` passes seconds, `close 1` ends a
    /// connection, `drain` is the operator's, `options memory left 100` starts anew with these,
    /// `offer password certificate anonymous` too, with users; `hold` answers no login before
    /// `answer`.
    fn obey(&mut self, line: &str) {
        let (directive, argument) = line.split_once(' ').unwrap_or((line, ""));
        match directive {
            "wait" => {
                self.ours.pass_time(Nanos((argument.parse::<f64>().unwrap() * 1e9) as u64));
            }
            "close" => self.ours.close(argument.parse().unwrap()),
            "drain" => self.ours.drain(),
            "options" => self.ours = Ours::new(options(argument)),
            "offer" => {
                self.ours = Ours::new(Options::default());
                self.ours.offer(LoginOffer {
                    password: argument.contains("password"),
                    certificate: argument.contains("certificate"),
                    unix: argument.contains("unix"),
                    anonymous: argument.contains("anonymous"),
                    token: false,
                    listener: argument.contains("listener"),
                });
            }
            "hold" => self.ours.hold_logins(),
            "answer" => self.ours.answer_logins(),
            client => self.send(client.parse().unwrap(), argument),
        }
    }

    fn send(&mut self, client: u64, text: &str) {
        while self.ours.opened() < client {
            self.ours.connect();
        }
        let bytes = match text.strip_prefix('<') {
            Some(bytes) => escape::bytes(bytes),
            None => [text.as_bytes(), b"\r\n"].concat(),
        };
        bytes.chunks(self.size).for_each(|piece| self.ours.send(client, piece));
    }

    fn heard(&mut self) -> String {
        let mut heard = String::new();
        for client in self.ours.open() {
            let answers = std::iter::from_fn(|| self.ours.answer(client)).collect::<Vec<_>>();
            for same in answers.chunk_by(|one, next| one == next) {
                write!(heard, "{client} {}", escape::text(&same[0])).unwrap();
                if same.len() > 1 {
                    write!(heard, " ({} times)", same.len()).unwrap();
                }
                heard.push('\n');
            }
            assert!(self.ours.output(client).is_empty(), "answers are whole");
            if self.ours.wants_close(client) {
                writeln!(heard, "{client} (closes)").unwrap();
                self.ours.close(client);
            }
        }
        heard
    }
}

fn options(text: &str) -> Options {
    let words: Vec<&str> = text.split(' ').collect();
    Options {
        policy: match words[0] {
            "memory" => StorePolicy::Memory,
            "never" => StorePolicy::Never,
            "always" => StorePolicy::Always,
            period => StorePolicy::Periodic(Nanos::from_millis(period.parse().unwrap())),
        },
        list_head: if words[1] == "left" { Side::Left } else { Side::Right },
        message_bytes_max: words[2].parse().unwrap(),
        ..Options::default()
    }
}
