//! Forged ledgers: each promise kept, and broken.

use super::*;

fn judged(lines: &str) -> Vec<String> {
    let ledger = Ledger::read(lines.trim_start()).expect("a ledger");
    judge(&ledger)
}

/// The only complaint about these lines.
fn complaint(lines: &str) -> String {
    let violations = judged(lines);
    assert_eq!(violations.len(), 1, "{violations:?}");
    violations[0].clone()
}

fn fine(lines: &str) {
    assert_eq!(judged(lines), Vec::<String>::new(), "{lines}");
}

/// Unit 1 sends m to a queue, unit 2 takes it; `middle` is the lines between them.
fn sent_and_taken(middle: &str) -> String {
    format!(
        "send 1 m orders persistent\ncommit 1\ndone 1\n{middle}\
         got 2 1 m orders\ncommit 2\ndone 2\ndrained\n"
    )
}

#[test]
fn message_taken_once_is_fine() {
    fine(&sent_and_taken(""));
}

#[test]
fn confirmed_message_missing_is_lost() {
    let lines = "send 1 m orders persistent\ncommit 1\ndone 1\ndrained\n";
    assert_eq!(complaint(lines), "unit 1 was confirmed, but m in orders never came");
}

#[test]
fn subscription_missing_publication_lost_it() {
    let lines = "send 1 m east,west persistent\ncommit 1\ndone 1\n\
                 got 2 1 m west\ncommit 2\ndone 2\ndrained\n";
    assert_eq!(complaint(lines), "unit 1 was confirmed, but m in east never came");
}

#[test]
fn confirmed_take_must_not_return() {
    let again = "got 3 1 m orders\ncommit 3\ndone 3\ndrained\n";
    let lines = sent_and_taken("").replace("drained\n", again);
    assert_eq!(complaint(&lines), "unit 2 was confirmed, but m in orders was taken and came again");
}

#[test]
fn message_taken_by_two_is_doubled() {
    let lines =
        sent_and_taken("got 3 1 m orders\n").replace("drained", "commit 3\ndone 3\ndrained");
    assert_eq!(complaint(&lines), "unit 3 was confirmed, but m in orders was taken and came again");
}

#[test]
fn late_ledger_line_is_no_redelivery() {
    let late = "got 3 1 m orders\n";
    let second = "got 2 2 m orders\ncommit 2\ndone 2\n";
    let sent = "send 1 m orders persistent\ncommit 1\ndone 1\n";
    fine(&format!("{sent}{second}{late}drained\n"));
}

#[test]
fn untaken_delivery_must_return() {
    fine(&sent_and_taken("got 3 1 m orders\n"));
    let lines = "send 1 m orders persistent\ncommit 1\ndone 1\ngot 2 1 m orders\ndrained\n";
    let expected = "unit 2 was never committed, but m in orders was taken and did not come again";
    assert_eq!(complaint(lines), expected);
}

#[test]
fn unanswered_send_may_be_there() {
    let unanswered = "send 8 x orders persistent\ncommit 8\nsend 9 y orders persistent\ncommit 9\n";
    fine(&sent_and_taken(&format!("{unanswered}got 3 1 x orders\ncommit 3\ndone 3\n")));
}

#[test]
fn unanswered_acknowledgement_may_have_worked() {
    let sent = "send 1 m orders persistent\ncommit 1\ndone 1\ngot 3 1 m orders\ncommit 3\n";
    fine(&format!("{sent}drained\n"));
    fine(&format!("{sent}got 4 2 m orders\ncommit 4\ndone 4\ndrained\n"));
}

#[test]
fn uncommitted_message_must_not_come() {
    let lines = sent_and_taken("").replace("commit 1\ndone 1\n", "");
    assert_eq!(complaint(&lines), "unit 1 was never committed, but m in orders came");
}

#[test]
fn message_must_follow_its_commit() {
    let lines = "send 1 m orders persistent\ngot 2 1 m orders\ncommit 2\ndone 2\n\
                 commit 1\ndone 1\ndrained\n";
    assert_eq!(complaint(lines), "m in orders came before unit 1 was committed");
}

#[test]
fn unanswered_transaction_is_all_or_nothing() {
    let both = "send 8 x orders persistent\nsend 8 y bills persistent\ncommit 8\n";
    let x = "got 3 2 x orders\ncommit 3\ndone 3\n";
    let y = "got 4 2 y bills\ncommit 4\ndone 4\n";
    fine(&sent_and_taken(both));
    fine(&sent_and_taken(&format!("{both}{x}{y}")));
    let expected = "unit 8 happened by half: x in orders came, but y in bills never came";
    assert_eq!(complaint(&sent_and_taken(&format!("{both}{x}"))), expected);
}

#[test]
fn forwarded_message_is_in_one_place() {
    let pass = "send 1 m orders persistent\ncommit 1\ndone 1\n\
                got 8 1 m orders\nsend 8 x bills persistent\ncommit 8\n";
    let back = "got 3 2 m orders\ncommit 3\ndone 3\n";
    let passed = "got 4 2 x bills\ncommit 4\ndone 4\n";
    fine(&format!("{pass}{back}drained\n"));
    fine(&format!("{pass}{passed}drained\n"));
    let both = "unit 8 happened by half: x in bills came, but m in orders was taken and came again";
    assert_eq!(complaint(&format!("{pass}{back}{passed}drained\n")), both);
    let neither = "unit 8 happened by half: m in orders was taken and did not come again, \
                   but x in bills never came";
    assert_eq!(complaint(&format!("{pass}drained\n")), neither);
}

#[test]
fn nonpersistent_message_may_be_lost() {
    let sent = "send 8 x orders volatile\ncommit 8\ndone 8\n";
    fine(&sent_and_taken(sent));
    fine(&sent_and_taken(&format!("{sent}got 3 1 x orders\n")));
    let again = format!("{sent}got 3 1 x orders\ncommit 3\ndone 3\ngot 4 1 x orders\n");
    let expected = "unit 3 was confirmed, but x in orders was taken and came again";
    assert_eq!(complaint(&sent_and_taken(&again)), expected);
    let early = "send 8 x orders volatile\nsend 8 y orders persistent\ncommit 8\n\
                 got 3 1 x orders\ncommit 3\n";
    let expected = "unit 8 happened by half: x in orders came, but y in orders never came";
    assert_eq!(complaint(&sent_and_taken(early)), expected);
}

#[test]
fn strangers_and_changed_bodies_are_told() {
    let stranger = sent_and_taken("got 3 1 s orders\n");
    assert_eq!(complaint(&stranger), "s came from orders, where it was not sent");
    let elsewhere = sent_and_taken("got 3 1 m DLQ\n");
    assert_eq!(complaint(&elsewhere), "m came from DLQ, where it was not sent");
    let changed = sent_and_taken("broken 1 orders m has a changed body\n");
    assert_eq!(complaint(&changed), "1 orders m has a changed body");
}

#[test]
fn ledger_without_end_proves_nothing() {
    let unfinished = sent_and_taken("").replace("drained\n", "");
    assert_eq!(complaint(&unfinished), "the ledger ends before everything was taken");
    assert!(Ledger::read("send 1 m\n").is_err(), "half a line");
    assert!(Ledger::read("done 1\n").is_err(), "an answer without a question");
}

#[test]
fn count_covers_deliveries_and_doubts() {
    let ledger = Ledger::read(&sent_and_taken("got 3 1 m orders\ncommit 3\n")).unwrap();
    let expected = Counts { came: 1, again: 1, confirmed: 2, in_doubt: 1 };
    assert_eq!(count(&ledger), expected);
}
