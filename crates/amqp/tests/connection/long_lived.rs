//! A session that lives long, while links of it come and go.

use crate::pair::Pair;
use crate::peer::Words;

/// More links than a session remembers runs of deliveries that went back.
const ROUNDS: usize = 1_100;

/// The runs that went back lie apart: a delivery of the link that stays is between each two.
#[test]
fn consumer_commits_after_many_links_end() {
    let mut pair = Pair::new();
    let client = pair.connect();
    let opening = "header amqp/open a/begin 0 window=1000000/attach 0 0 sender c coordinator/\
        attach 0 1 receiver stays source=work";
    opening.split('/').for_each(|line| pair.say(client, line));
    pair.stranger(&Words::new("put other 5 x"));
    for round in 0..ROUNDS {
        let (delivery, request, seen) = (2 * round, 2 * round, 2 * round);
        pair.stranger(&Words::new(&format!("put work 5 {round}")));
        pair.sync();
        let windows = format!("seen={seen} window=1000000");
        pair.say(client, &format!("flow 0 handle=1 count={round} credit=1 {windows}"));
        pair.say(client, "attach 0 2 receiver goes source=other");
        pair.say(client, &format!("flow 0 handle=2 count=0 credit=1 {windows}"));
        pair.say(client, "detach 0 2 closed");
        pair.say(client, &format!("transfer 0 0 {request} declare"));
        let declared = pair.hear(client, u32::MAX);
        assert!(declared.contains(&format!("id={delivery} ")), "{declared}");
        pair.say(client, &format!("disposition 0 {delivery} settled accepted txn={round}"));
        pair.say(client, &format!("transfer 0 0 {} commit={round}", request + 1));
        pair.sync();
        let heard = pair.hear(client, u32::MAX);
        let answer = format!("disposition 0 receiver {} settled accepted", request + 1);
        assert!(heard.contains(&answer), "round {round}: {heard}");
    }
}
