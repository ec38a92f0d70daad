//! The same scripts to Redis 7 and to Luau: their answers are the same bytes, but for those of
//! `differences.txt`.

use script::Luau;
use testkit::foreign_server::{ByteClient, ForeignServer, PATIENCE};

use crate::encoding::encode;
use crate::support::run;

#[test]
fn scripts_answer_as_redis_does() {
    let Some(redis) = ForeignServer::unless_skipped("DUNLIN_SKIP_REDIS", ForeignServer::redis)
    else {
        return;
    };
    let mut clients = [redis.connect(), redis.connect()];
    ask(&mut clients[1], &["HELLO", "3"]);
    let mut different = String::new();
    let mut count = 0;
    for source in SCRIPTS.lines() {
        count += 1;
        let value = run(&Luau::default(), source);
        for (client, resp3) in clients.iter_mut().zip([false, true]) {
            let theirs = ask(client, &["EVAL", source, "0"]);
            let mut ours = Vec::new();
            encode(&value, resp3, &mut ours);
            if (ours != theirs) != is_expected(source, resp3) {
                different.push_str(&format!(
                    "{source}\n   redis {}\n   luau  {}\n",
                    theirs.escape_ascii(),
                    ours.escape_ascii()
                ));
            }
        }
    }
    assert!(count >= 120, "only {count} scripts");
    assert!(different.is_empty(), "{different}");
}

fn is_expected(source: &str, resp3: bool) -> bool {
    DIFFERENCES.lines().any(|line| line == source)
        || resp3 && DIFFERENCES_OF_RESP3.contains(&source)
}

/// The answer of Redis, which an answer with a mark follows.
fn ask(client: &mut ByteClient, words: &[&str]) -> Vec<u8> {
    let mut request = client::resp::command(words);
    request.extend_from_slice(&client::resp::command(&["ECHO", MARK]));
    client.send(&request);
    let end = format!("${}\r\n{MARK}\r\n", MARK.len());
    while !client.received.ends_with(end.as_bytes()) {
        assert_eq!(client.receive(PATIENCE), Ok(true), "Redis answers {words:?}");
    }
    let mut answer = std::mem::take(&mut client.received);
    answer.truncate(answer.len() - end.len());
    answer
}

const MARK: &str = "end of the answer";

/// One script in each line.
const SCRIPTS: &str = include_str!("scripts.txt");

/// Scripts that Luau answers otherwise, below the reason.
const DIFFERENCES: &str = include_str!("differences.txt");

/// [`model::ScriptValue`] has no long numbers and no text for people: they go as bytes.
const DIFFERENCES_OF_RESP3: [&str; 2] =
    ["return {big_number=\"123\"}", "return {verbatim_string={format=\"txt\",string=\"a\"}}"];
