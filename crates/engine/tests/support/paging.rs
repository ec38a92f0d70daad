//! The broker's part for an engine that pages out bodies: they come back at once.

use engine::{Effects, Engine, stored_bodies};
use model::{BodyPlace, Capacity, Lsn, Nanos};

/// Before a call: all frames can be read back, so bodies leave.
pub(crate) fn before(engine: &mut Engine) {
    engine.handle_capacity(written_through(engine.last_lsn()));
}

/// After a call: replies get their bodies, and commands that look into some go on.
pub(crate) fn after(
    engine: &mut Engine,
    frame: &dyn Fn(Lsn) -> Vec<u8>,
    now: Nanos,
    effects: &mut Effects,
) -> u64 {
    let mut came = 0;
    let written = engine.last_lsn().min(before_of(effects));
    loop {
        if engine.bodies().is_disturbed() {
            assert!(engine.poll_timeout().is_some_and(|at| at <= now), "they go on at once");
            engine.handle_timeout(now, Capacity::UNBOUNDED, effects);
        } else if let Some(lsn) = engine.bodies().wanted_frame() {
            came += 1;
            assert!(came < 10_000, "who looks into bodies comes to an end");
            engine.restore(lsn, &frame(lsn)).unwrap();
            engine.check();
            // The next turn begins: bodies that are not awaited leave again.
            engine.handle_capacity(written_through(written));
        } else {
            break;
        }
    }
    for output in &mut effects.outputs {
        output.reply.each_shown(&mut |shows| {
            if let Some(paged_out) = shows.body.paged_out() {
                let BodyPlace::Frame(lsn) = paged_out.place else { panic!("nothing is spilled") };
                let payload = frame(lsn);
                let mut bodies = stored_bodies(&payload, [paged_out.message].into()).unwrap();
                shows.fill(bodies.remove(0).1);
                came += 1;
            }
        });
    }
    came
}

/// The capacity of a log that can return all frames up to this one.
pub(crate) fn written_through(written: Lsn) -> Capacity {
    Capacity { written: Some(written), ..Capacity::UNBOUNDED }
}

/// The last frame before those of this call.
fn before_of(effects: &Effects) -> Lsn {
    effects.frames.first().map_or(Lsn(u64::MAX), |frame| Lsn(frame.lsn.0 - 1))
}
