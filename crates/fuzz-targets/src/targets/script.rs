//! Scripts of the Redis server: no text makes Lua or its libraries panic, and each ends within its memory and its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drumlin_fs::Clock;
use drumlin_redis::internals::ScriptState;

use crate::input::Input;

const MEMORY_BYTES: usize = 4 << 20;
/// Looks at the clock before a script is ended.
const LOOKS: u64 = 3;

/// A clock by which each look at it takes a millisecond, so that time depends on the script alone.
#[derive(Debug, Default)]
struct CountedLooks(AtomicU64);

impl Clock for CountedLooks {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn unix_time(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) {}
}

fn reply(code: &[u8], args: &[&[u8]]) -> Result<Vec<u8>, String> {
    let mut state = ScriptState::new(Arc::new(CountedLooks::default()), MEMORY_BYTES);
    state.run(code, args, Duration::from_millis(LOOKS))
}

/// A script.
pub(crate) fn run_code(data: &[u8]) {
    // What it answers is its own affair.
    drop(reply(data, &[b"an argument"]));
}

/// Decodes its argument with each library; what was decoded, encoded and decoded again is then the same value. The first pass may
/// lose what an encoding cannot hold, such as the last digits of a number.
const ROUND_TRIPS: &str = r#"
local function same(one, other, depth)
  if type(one) ~= type(other) then return false end
  if type(one) ~= "table" then return one == other or (one ~= one and other ~= other) end
  if depth > 200 then return true end
  for key, value in pairs(one) do
    -- No other table is the same key.
    if type(key) == "table" then return true end
    if not same(value, other[key], depth + 1) then return false end
  end
  for key in pairs(other) do
    if one[key] == nil then return false end
  end
  return true
end
local function checked(name, decode, encode, text)
  local fine, value = pcall(decode, text)
  if not fine then return end
  for pass = 1, 2 do
    local encoded, bytes = pcall(encode, value)
    if not encoded then return end
    local decoded, again = pcall(decode, bytes)
    if not decoded then
      if pass == 2 then return name .. " does not read what it wrote" end
      return
    end
    if pass == 2 and not same(value, again, 0) then return name .. " reads another value than it wrote" end
    value = again
  end
end
local found = checked("cjson", cjson.decode, cjson.encode, ARGV[1])
  or checked("cmsgpack", cmsgpack.unpack, cmsgpack.pack, ARGV[1])
if found then return found end
local fine = pcall(struct.size, ARGV[2])
local read = { pcall(struct.unpack, ARGV[2], ARGV[1]) }
if read[1] and not fine and not ARGV[2]:find("[sc]") then return "struct.unpack takes a format that struct.size refuses" end
return "sound"
"#;

/// A format of `struct`, behind its length, and bytes for all decoders.
pub(crate) fn run_values(data: &[u8]) {
    let mut input = Input::new(data);
    let format_len = usize::from(input.byte() % 16);
    let rest = input.rest();
    let (format, bytes) = rest.split_at(format_len.min(rest.len()));
    match reply(ROUND_TRIPS.as_bytes(), &[bytes, format]) {
        Ok(found) => assert_eq!(String::from_utf8_lossy(&found), "$5\r\nsound\r\n"),
        // It may need more memory or time than there is, and fails for nothing else.
        Err(error) => assert!(
            error.contains("memory") || error.contains("was ended"),
            "{error}"
        ),
    }
}
