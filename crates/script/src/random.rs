//! `math.random` as Redis has it: the generator `drand48`, with the same numbers everywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mlua::{Lua, MultiValue, Table};

use crate::native::{Refusal, bad_argument, function, number};

/// The state of the generator, of which 48 bits count.
#[derive(Debug, Default)]
pub(crate) struct Random(AtomicU64);

impl Random {
    /// Begins anew.
    pub(crate) fn seed(&self, seed: u32) {
        self.0.store((u64::from(seed) << 16) | 0x330e, Relaxed);
    }

    /// A number from 0 to below 1.
    fn fraction(&self) -> f64 {
        let state = self.0.load(Relaxed).wrapping_mul(0x5_deec_e66d).wrapping_add(11);
        let state = state & ((1 << 48) - 1);
        self.0.store(state, Relaxed);
        // 31 bits, of which the greatest is left out.
        ((state >> 17) % RANDOM_MAX) as f64 / RANDOM_MAX as f64
    }
}

const RANDOM_MAX: u64 = 0x7fff_ffff;

/// Puts `random` and `randomseed` into a table.
pub(crate) fn install(
    lua: &Lua,
    table: &Table,
    random: &std::sync::Arc<Random>,
) -> mlua::Result<()> {
    let (seeded, random) = (random.clone(), random.clone());
    table.raw_set(
        "randomseed",
        function(lua, move |lua, arguments| {
            let seed = number(lua, arguments, 1, "randomseed")?;
            seeded.seed(crate::number::truncated(seed) as u32);
            Ok(())
        })?,
    )?;
    table.raw_set("random", function(lua, move |lua, arguments| draw(lua, arguments, &random))?)
}

fn draw(lua: &Lua, arguments: &MultiValue, random: &Random) -> Result<f64, Refusal> {
    let fraction = random.fraction();
    let (low, high) = match arguments.len() {
        0 => return Ok(fraction),
        1 => (1.0, number(lua, arguments, 1, "random")?.trunc()),
        2 => {
            let low = number(lua, arguments, 1, "random")?.trunc();
            (low, number(lua, arguments, 2, "random")?.trunc())
        }
        _ => return Err("wrong number of arguments".into()),
    };
    if low > high {
        return Err(bad_argument(arguments.len(), "random", "interval is empty"));
    }
    Ok((fraction * (high - low + 1.0)).floor() + low)
}
