//! Goal: scripts and functions answer as Redis's do, and none ends the server. Method: scripts that are right and wrong, random
//! values through the conversions and the libraries, beside redis-server; ours alone: data that is on disk only, scripts that would
//! take all memory, all stack or all time.

use drumlin_base::rng::Rng;
use drumlin_redis::{Server, ServerOptions};
use drumlin_resp::Value;

use crate::pair::{Ours, Pair, Words, ask_at, config_of, pick, random_lines, same_facts, words};

/// EVAL of a script without keys.
fn eval(script: &str) -> Words {
    let words = ["EVAL", script, "0"];
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn command(words: &[&str]) -> Words {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

const SCRIPTS: &[&str] = &[
    // Values.
    "return {1, 2, {3, 'a'}, nil, 4}",
    "return {3.99, -3.99, 1e300, -1e300, 0/0, 1/0}",
    "return {true, false}",
    "return function() end",
    "return {a = 1}",
    "return {ok = 'a\\r\\nb\\0c'}",
    "return {err = 'no code'}",
    "return {double = 3.1}",
    "return {{double = 1/0}, {map = {a = {1}}}, {set = {a = true}}, {big_number = '-123'}}",
    "return {verbatim_string = {format = 'txt', string = 'x'}}",
    "redis.setresp(3) return {true, false, redis.call('hgetall', 'none'), redis.call('get', 'none')}",
    "redis.call('hset', 'h', 'f', 'v') redis.setresp(3) return redis.call('hgetall', 'h').map.f",
    "redis.call('zadd', 'z', 1.5, 'm') redis.setresp(3) return redis.call('zscore', 'z', 'm').double == 1.5",
    "redis.call('sadd', 's', 'm') redis.setresp(3) return redis.call('smembers', 's').set.m",
    "return redis.call('set', 'k', 0.1)",
    "return redis.call('mget', 'k', 'none')",
    "redis.call('set', 'k', 1e20) return redis.call('get', 'k')",
    "return tostring(1e15) .. tostring(0.1) .. 10",
    // Errors.
    "return redis.call('nope')",
    "return redis.pcall('nope')",
    "return redis.call('get')",
    "return redis.call()",
    "return redis.call('set', {}, 1)",
    "return redis.call('incr', 's')",
    "return {pcall(redis.call, 'incr', 's')}",
    "return redis.call('eval', 'return 1', 0)",
    "return redis.call('blpop', 'none', 0)",
    "return redis.call('subscribe', 'x')",
    "return redis.call('config', 'get', 'x')",
    "error('x')",
    "error()",
    "error({err = 'MY code'})",
    "\n\nlocal x = 1\nerror('on line four')",
    "return 1 + nil",
    "local a a.b = 1",
    "local a a()",
    "return redis.nope()",
    "return {} < {}",
    "return (",
    "return redis.error_reply('MY code')",
    "return redis.error_reply('bare')",
    "return redis.error_reply()",
    "return redis.status_reply('FINE')",
    "return xpcall(function() error('x') end, function(e) return e end)",
    "local ok, e = pcall(function() error({err = 'E x'}) end) return e",
    "return {coroutine.resume(coroutine.create(function() redis.call('nope') end))}",
    "local co = coroutine.wrap(function() error('in co') end) co()",
    "redis.setresp(4)",
    "redis.set_repl(9)",
    "return redis.acl_check_cmd('nope')",
    "return redis.acl_check_cmd('get', 'x')",
    "redis.log(9, 'x')",
    "return redis.sha1hex()",
    "return {redis.sha1hex(''), redis.REDIS_VERSION, redis.REDIS_VERSION_NUM, redis.REPL_ALL, redis.LOG_WARNING}",
    // The sandbox.
    "return foo",
    "foo = 1",
    "_G = {}",
    "redis.call = 1",
    "string.upper = nil",
    "getmetatable('').__index = {}",
    "getmetatable(_G).__index = {}",
    "setmetatable(_G, {})",
    "rawset(redis, 'call', 1)",
    "return {type(os), 1}",
    "return setfenv",
    "return newproxy",
    "return print",
    "dofile('x')",
    "return loadstring('return 1 + 1')()",
    "return loadstring(string.dump(function() return 1 end))",
    "for k in pairs(redis) do if k == 'call' then return k end end",
    "return next({})",
    "KEYS[1] = 'z' return KEYS[1]",
    "return collectgarbage('count') > 0",
    "return ('x'):rep(3)",
    "return ('x'):bad()",
    "local value = unpack({}, 1, 1e8) return value",
    "table.sort({3, 2, 1, 5, 4, 3, 2, 1}, function() return true end) return 1",
    // Random numbers: one sequence.
    "return {math.random(100), math.random(5, 9), math.floor(math.random() * 1e6)}",
    "math.randomseed(7) return {math.random(1000), math.random(1000)}",
    "return math.random(0)",
    "return math.random(1, 2, 3)",
    // Libraries.
    "return cjson.encode({1, {a = 1.5}, 'x\\ny/\\127', true, cjson.null})",
    "return cjson.encode({1e15, 1e14, 0.1, -0.5, 123456789012345678})",
    "return cjson.encode({[1] = 1, [100] = 2})",
    "return cjson.encode({[2] = 1})",
    "return cjson.encode({})",
    "return cjson.encode(1/0)",
    "return cjson.encode({[{}] = 1})",
    "return cjson.encode(redis.call)",
    "return cjson.encode()",
    "local t = {} t[1] = t return cjson.encode(t)",
    "return cjson.decode('[1, 2.5, \"a\\\\u00e9\\\\ud83d\\\\ude00\", [], {\"k\": [null, true]}]')",
    "return cjson.decode('{\"a\": 1')",
    "return cjson.decode('[1,]')",
    "return cjson.decode('nul')",
    "return cjson.decode('[\"\\\\x\"]')",
    "return cjson.decode('\"a')",
    "return cjson.decode('1 2')",
    "return cjson.decode(string.rep('[', 2000))",
    "return {tostring(cjson.decode('0x1F')), tostring(cjson.decode('-inf')), tostring(cjson.decode('1e3'))}",
    "return cmsgpack.pack({1, 2, {a = 'b'}, -1, 3.5, true, false})",
    "return cmsgpack.pack()",
    "return {cmsgpack.unpack('\\147\\1\\2')}",
    "return {cmsgpack.unpack('\\193')}",
    "return {cmsgpack.unpack_one('\\1\\2\\3', 1)}",
    "return {cmsgpack.unpack_limit('\\1\\2\\3', 2, 0)}",
    "return cmsgpack.unpack_limit('\\1', 1, 9)",
    "return {struct.unpack('>I2s', struct.pack('>I2s', 258, 'abc'))}",
    "return struct.pack('!8bd', 1, 2)",
    "return struct.size('!4 b i8')",
    "return struct.pack('q', 1)",
    "return struct.pack('i4', 'x')",
    "return struct.unpack('<I2', '\\1')",
    "return struct.pack('i33', 1)",
    "return {bit.tohex(255), bit.tohex(-1, -4), bit.band(-1, 255), bit.bor(1, 6), bit.bxor(5, 1)}",
    "return {bit.lshift(1, 31), bit.rshift(-1, 1), bit.arshift(-8, 2), bit.rol(0x12345678, 12), bit.bswap(1)}",
    "return bit.bnot()",
    "return bit.tobit('x')",
    // The first line.
    "#!lua\nreturn 1",
    "#!lua flags=no-writes\nreturn redis.call('set', 'k', 1)",
    "#!lua flags=nope\nreturn 1",
    "#!lisp\nreturn 1",
    "#!lua name=x\nreturn 1",
    "#!lua",
];

#[test]
fn scripts_answer_as_redis_does() {
    let Some(pair) = Pair::start() else {
        return;
    };
    for protocol in ["2", "3"] {
        let commands: Vec<Words> = SCRIPTS.iter().map(|script| eval(script)).collect();
        pair.same(protocol, &commands, |_| true);
    }
}

#[test]
fn commands_of_scripts_answer_as_redis_does() {
    let Some(pair) = Pair::start() else {
        return;
    };
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let lines: &[&[&str]] = &[
        &["EVAL", "return {KEYS[1], ARGV[1]}", "1", "k", "a"],
        &["EVAL", "return 1", "x"],
        &["EVAL", "return 1", "-1"],
        &["EVAL", "return 1", "2", "k"],
        &["EVALSHA", sha, "0"],
        &["EVALSHA", "short", "0"],
        &["SCRIPT", "LOAD", "return 1"],
        &["SCRIPT", "LOAD", "return ("],
        &["SCRIPT", "EXISTS", sha, "x", &sha.to_uppercase()],
        &["EVALSHA", sha, "0"],
        &["EVALSHA_RO", &sha.to_uppercase(), "0"],
        &["EVAL_RO", "return redis.call('set', 'k', 1)", "0"],
        &["EVAL_RO", "#!lua\nreturn 1", "0"],
        &["EVAL_RO", "#!lua flags=no-writes\nreturn 1", "0"],
        &["SCRIPT", "FLUSH", "x"],
        &["SCRIPT", "FLUSH", "ASYNC"],
        &["SCRIPT", "EXISTS", sha],
        &["SCRIPT", "KILL"],
        &["SCRIPT", "HELP"],
        &["SCRIPT", "NOPE"],
        &["SCRIPT", "LOAD"],
        &["FUNCTION", "KILL"],
        &["FUNCTION", "HELP"],
        &["FUNCTION", "STATS"],
        &["FUNCTION", "LOAD", "return 1"],
        &["FUNCTION", "LOAD", "#!lua name=a b\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a-b\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lisp name=a\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a\nreturn 1"],
        &["FUNCTION", "LOAD", "#!lua name=a\nreturn ("],
        &["FUNCTION", "LOAD", "#!lua name=a\nredis.call('get', 'x')"],
        &[
            "FUNCTION",
            "LOAD",
            "#!lua name=a\nredis.register_function('f', 1)",
        ],
        &["FUNCTION", "LOAD", LIBRARY],
        &["FUNCTION", "LOAD", LIBRARY],
        &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
        &[
            "FUNCTION",
            "LOAD",
            "#!lua name=other\nredis.register_function('F1', function() end)",
        ],
        &["FCALL", "f1", "1", "k", "a"],
        &["FCALL", "F2", "0"],
        &["FCALL_RO", "f1", "1", "k", "a"],
        &["FCALL_RO", "f2", "0"],
        &["FCALL", "nope", "0"],
        &["FCALL", "f1", "x"],
        &["FCALL", "f1", "9"],
        &["GET", "k"],
        &["FUNCTION", "STATS"],
        &["FUNCTION", "LIST", "LIBRARYNAME", "nope*"],
        &["FUNCTION", "LIST", "LIBRARYNAME"],
        &["FUNCTION", "LIST", "x"],
        &["FUNCTION", "RESTORE", "damaged"],
        &["FUNCTION", "DELETE", "nope"],
        &["FUNCTION", "DELETE", "mylib"],
        &["FUNCTION", "LIST"],
        &["FUNCTION", "FLUSH", "x"],
        &["FUNCTION", "FLUSH"],
        // A script in MULTI, and one that fails after a write.
        &["MULTI"],
        &[
            "EVAL",
            "redis.call('set', 'k', 'in multi') return redis.call('get', 'k')",
            "0",
        ],
        &["EVAL", "redis.call('set', 'k', 'kept') error('x')", "0"],
        &["EXEC"],
        &["GET", "k"],
        &["EVAL", "return redis.call('select', 3)", "0"],
        &[
            "EVAL",
            "redis.call('select', 3) return redis.call('set', 'k', 'three')",
            "0",
        ],
        &["GET", "k"],
        &["COMMAND", "GETKEYS", "EVAL", "x", "2", "a", "b", "c"],
    ];
    let commands: Vec<Words> = lines.iter().map(|line| command(line)).collect();
    for protocol in ["2", "3"] {
        pair.same(protocol, &commands, |_| true);
    }
}

const LIBRARY: &str = "#!lua name=mylib
local function both(keys, args)
  redis.call('set', keys[1], args[1])
  return {redis.call('get', keys[1]), #keys, #args}
end
redis.register_function('f1', both)
redis.register_function{function_name = 'f2', callback = function() return 'two' end, description = 'd', flags = {'no-writes'}}
";

#[test]
fn facts_are_those_of_redis() {
    same_facts("eval eval_ro evalsha evalsha_ro fcall fcall_ro function script");
}

/// A value of Lua; tables have at most one name, as their order is Lua's own.
fn value(rng: &mut Rng, depth: u32) -> String {
    const LEAVES: &[&str] = &[
        "1",
        "-1",
        "0",
        "127",
        "128",
        "-33",
        "65536",
        "-32769",
        "4294967296",
        "1.5",
        "-0.1",
        "1e100",
        "3.14159265358979",
        "'a'",
        "''",
        "'text/\\0\\200'",
        "true",
        "false",
        "'long'",
        "9007199254740993",
    ];
    match rng.next_u64() % if depth < 4 { 4 } else { 2 } {
        2 => {
            let count = rng.next_u64() % 4;
            let items: Vec<_> = (0..count).map(|_| value(rng, depth + 1)).collect();
            format!("{{{}}}", items.join(","))
        }
        3 => format!("{{name={}}}", value(rng, depth + 1)),
        _ => pick(rng, LEAVES).to_owned(),
    }
}

#[test]
fn random_values_go_through_the_libraries() {
    const WAYS: &[&str] = &[
        "return cjson.encode(V)",
        "return cmsgpack.pack(V)",
        "return cjson.encode(cjson.decode(cjson.encode({V})))",
        "return cjson.encode({cmsgpack.unpack(cmsgpack.pack(V,V))})",
        "return V",
        "redis.setresp(3)return{map={a=V}}",
        "return{V,V}",
        "return redis.call('echo',tostring(V==V))",
    ];
    let line = |rng: &mut Rng| {
        let script = pick(rng, WAYS).replace('V', &value(rng, 0));
        // The words of a line are split at spaces: Lua takes a comment for one.
        format!("EVAL {} 0", script.replace(' ', "--[[]]"))
    };
    random_lines(2_000, &[], line, |_, value| Some(value));
}

// Ours alone.

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Error(bytes) | Value::Verbatim(_, bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_script_over_data_on_disk_runs_as_over_data_in_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let first = Ours::start(&data);
    let mut commands: Vec<Words> = (0..3_000)
        .map(|number| command(&["SET", &format!("key:{number}"), &"v".repeat(200)]))
        .collect();
    commands.push(words("COMPACT"));
    first.ask(&commands);
    drop(first);
    // The compaction ends with the server; what is read now is on disk.
    let second = Ours::start(&data);
    let script = "local drawn = math.random(100)
        redis.call('incr', 'runs')
        redis.call('publish', 'channel', 'x')
        for at = 0, 2999, 500 do
          local done, failure = pcall(redis.call, 'get', 'key:' .. at)
          if not done then return 'caught' end
        end
        return {drawn, redis.call('get', 'runs')}";
    let multi = ["MULTI", "GET key:250", "GET key:1250", "EXEC"].map(words);
    let mut commands = vec![eval(script), words("GET runs"), words("INFO stats")];
    commands.extend(multi);
    commands.push(words("INFO stats"));
    let replies = second.ask(&commands);
    // 40 is the first of the sequence: the runs that were undone have drawn it too.
    assert_eq!(
        format!("{:?}", replies[0]),
        format!(
            "{:?}",
            Value::Array(vec![Value::Integer(40), Value::Bulk(b"1".to_vec())])
        )
    );
    assert_eq!(text(&replies[1]), "1", "what was undone is not there");
    let info = text(&replies[2]);
    assert!(!info.contains("cold_commands:0"), "the script met the disk");
    let commands = |at: usize| {
        let text = text(&replies[at]);
        let of_line = |line: &str| line.strip_prefix("total_commands_processed:")?.parse().ok();
        text.lines()
            .find_map(of_line)
            .expect("a number of commands")
    };
    // EVAL, the nine that the script called, and GET.
    let before: u64 = commands(2);
    assert_eq!(before, 11, "what was undone is not counted");
    // INFO, MULTI, EXEC and its two; QUEUED is no command that ran.
    assert_eq!(commands(7) - before, 5, "what was undone is not counted");
}

#[test]
fn no_script_ends_the_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let ours = Ours::start(&dir.path().join("data"));
    let hostile = [
        "local function f() return pcall(f) end return tostring(f())",
        "local function f() return 1 + f() end return f()",
        "local function f() return string.gsub('a', 'a', f) end return f()",
        "local function f() return coroutine.wrap(f)() end return f()",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "local s = 'x' while true do local ok, e = pcall(function() s = s .. s end) if not ok then return e end end",
        "return #string.rep('x', 1e10)",
        "return #string.rep('', 1e9)",
        "return string.find('a', string.rep('a?', 100000))",
        "cjson.encode_max_depth(1000000000) local t = {} t[1] = t return cjson.encode(t)",
        "cjson.decode_max_depth(1000000000) return cjson.decode(string.rep('[', 1000000))",
        "return cmsgpack.unpack(string.rep('\\145', 1000000))",
        "return cmsgpack.unpack(string.rep('\\1', 100000))",
        "return struct.unpack(string.rep('b', 100000), string.rep('x', 100000))",
        "return struct.pack('c2000000000', 'x')",
        "return redis.call('mset', unpack({}, 1, 7990))",
        "return {unpack({1, 2, 3}, -2, 2147483647)}",
        "return {unpack({1, 2, 3}, 0, 2147483647)}",
        "return {unpack({1, 2, 3}, -2147483648, -2)}",
        "return {unpack({1, 2, 3}, -2147483648, 2147483647)}",
        "return {unpack({1, 2, 3}, -1 / 0, 1 / 0)}",
        "return {unpack({1, 2, 3}, 0 / 0, 0 / 0)}",
        "local t = {} for i = 1, 7980 do t[i] = 'x' end return redis.call('del', unpack(t))",
        "return table.concat({}, 'x', 1, 1e8)",
        "error(setmetatable({}, {__index = function() error('again') end}))",
        "return setmetatable({}, {__index = function() error('again') end})",
        "return xpcall(function() error('x') end, function() error('y') end)",
    ];
    for script in hostile {
        let replies = ours.ask(&[eval(script), words("PING")]);
        assert_eq!(replies[1], Value::Simple(b"PONG".to_vec()), "{script}");
    }
    let replies = ours.ask(&[eval("return 'fit'")]);
    assert_eq!(text(&replies[0]), "fit");
}

#[test]
fn a_script_that_never_ends_is_killed_whatever_it_catches() {
    let dir = tempfile::tempdir().expect("a directory");
    let ours = Ours::start(&dir.path().join("data"));
    ours.ask(&[words("CONFIG SET busy-reply-threshold 1")]);
    let scripts = [
        "while true do end",
        "local f = function() while true do redis.call('ping') end end while true do pcall(f) end",
        "while true do xpcall(function() while true do end end, function(e) return e end) end",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    ];
    let socket = ours.socket();
    for script in scripts {
        std::thread::scope(|scope| {
            let runs = scope.spawn(|| ask_at(socket, &[eval(script)]));
            while !runs.is_finished() {
                let reply = ours.ask(&[words("SCRIPT KILL")]);
                let reply = text(&reply[0]);
                assert!(!reply.contains("UNKILLABLE"), "{script}: {reply}");
            }
            let replies = runs.join().expect("answered");
            let reply = text(&replies[0]);
            assert!(reply.contains("Script killed by user"), "{script}: {reply}");
        });
    }
}

#[test]
fn libraries_are_there_again_and_a_damaged_one_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let data = dir.path().join("data");
    let first = Ours::start(&data);
    first.ask(&[command(&["FUNCTION", "LOAD", LIBRARY])]);
    let dumped = first.ask(&[words("FUNCTION DUMP")]);
    drop(first);
    let second = Ours::start(&data);
    let replies = second.ask(&[words("FCALL f2 0"), words("FUNCTION DUMP")]);
    assert_eq!(text(&replies[0]), "two");
    assert_eq!(replies[1], dumped[0]);
    drop(second);
    let options = drumlin_redis_store::StoreOptions::default();
    let store = drumlin_redis_store::Store::open(&data, options).expect("opens");
    let db = store.db();
    db.put(b"library mylib", b"#!lua name=mylib\nreturn (")
        .expect("writes");
    drop(store);
    let opened = Server::open(ServerOptions {
        config: config_of(&data),
        env: drumlin_fs::Env::system(),
        network: std::sync::Arc::new(drumlin_fs::net::PosixNetwork::new()),
    });
    let error = opened
        .expect_err("a library that cannot be loaded")
        .to_string();
    assert!(error.contains("mylib"), "{error}");
}
