//! Names that were given up for the field's own word: they do not come back.

use super::Finding;
use super::words::{code_of, words_of};
use crate::repository::Repository;

/// The old name, and the present one.
const RETIRED: [(&str, &str); 63] = [
    ("Apart", "NotBatchable"),
    ("Away", "PagedOut"),
    ("Commons", "ProtocolState"),
    ("Desk", "GatewayState"),
    ("Dismissal", "WaitCancel"),
    ("Does", "Handler"),
    ("Errand", "FollowUp"),
    ("Facts", "StatsFacts or InfoFacts"),
    ("Few", "OneOrMany"),
    ("Goal", "MoveTarget"),
    ("House", "Repository or Harness"),
    ("Keeper", "BodyOwner or SubscriptionOwner"),
    ("Lack", "Shortage"),
    ("LineOf", "WaitListId"),
    ("Over", "ExpiredList"),
    ("Paced", "BlockedSend"),
    ("Pacing", "BlockedSends"),
    ("Plan", "Query"),
    ("Prompt", "WatchedStream"),
    ("Pump", "GatewayLoop"),
    ("Residents", "ResidentBodies"),
    ("Sought", "PageQuery"),
    ("Spent", "CallUsage"),
    ("Spot", "Placement"),
    ("Stretch", "SegmentSlice"),
    ("TakenBack", "ReleasedRanges"),
    ("Trouble", "GatewayError"),
    ("Untaken", "Unread"),
    ("Wording", "ReplyFormat"),
    ("attempts_max", "max_delivery_attempts"),
    ("buries_nothing", "deletes_dead"),
    ("by_hand", "test_harness"),
    ("doomed", "rollback_only or expired_members"),
    ("dooms", "makes_rollback_only"),
    ("enter_views", "index_in_views"),
    ("errand", "follow_up"),
    ("errands", "follow_ups"),
    ("forsake_record", "abandon_record"),
    ("is_doomed", "is_expired_member"),
    ("is_hungry", "has_credit"),
    ("keep_house", "run_chores"),
    ("lacks_memory_for", "shortage_of_memory_for"),
    ("lacks_place", "shortage_of_place"),
    ("lacks_place_for", "shortage_of_place_for"),
    ("lacks_room_for", "shortage_of_room_for"),
    ("lacks_room_to_park", "shortage_of_room_to_park"),
    ("leave_views", "unindex_from_views"),
    ("lose_queue", "orphan_queue"),
    ("move_out", "unaccount"),
    ("pace_max", "block_timeout"),
    ("paced", "blocked_sends"),
    ("pass_on", "commit_effects"),
    ("phantoms", "pending_unsubscribes"),
    ("picture_bytes", "snapshot_bytes"),
    ("picture_bytes_of", "snapshot_bytes_of"),
    ("picture_changed", "snapshot_changed"),
    ("send_id_window", "dedup_window"),
    ("send_ids_max", "dedup_max_ids"),
    ("settle_in", "account"),
    ("taken_back", "released_ranges"),
    ("tell_attach", "emit_attach"),
    ("tell_delivery", "emit_delivery"),
    ("went_away", "paged_out_total"),
];

/// No code uses a retired name.
pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let files = repository.under("", ".rs").filter(|file| file.path != "xtask/src/tidy/retired.rs");
    let mut findings = Vec::new();
    for file in files {
        for (number, line) in file.lines() {
            for word in words_of(&code_of(line)) {
                if let Some((_, now)) = RETIRED.iter().find(|(old, _)| *old == word) {
                    let what = format!("{word} is {now} now");
                    findings.push(Finding::new(&file.path, number, what));
                }
            }
        }
    }
    findings
}
