-- Makes the globals that scripts see. Lua 5.1 has no read-only tables: a script gets an empty stand-in for each shared
-- table, whose metatable reads the real one and refuses writes, and the functions that would look behind it know it.
-- Everything here is local: no script can replace what these functions use.
local host = ...
local pcall, xpcall, error, type, tostring = pcall, xpcall, error, type, tostring
local next, pairs, rawget, rawset, select = next, pairs, rawget, rawset, select
local getmetatable, setmetatable, setfenv = getmetatable, setmetatable, setfenv
local collectgarbage, tonumber, unpack = collectgarbage, tonumber, unpack
local caught, check = host.caught, host.check

local real = {} -- the real table of each stand-in
local guard = {} -- the metatable that getmetatable shows for it

local function refuse()
  error("Attempt to modify a readonly table", 2)
end

local function stand_in(table)
  local it = {}
  real[it] = table
  return setmetatable(it, { __index = table, __newindex = refuse })
end

local function missing(_, name)
  local kind = type(name)
  if kind ~= "string" and kind ~= "number" then
    error("Second argument to luaProtectedTableError must be a string or number", 2)
  end
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

local missing_meta = { __index = missing }
local shown_meta = stand_in(missing_meta)

-- Errors that end a script are raised again by every function that could catch them.
local function after_pcall(done, ...)
  if done then
    return true, ...
  end
  local failure = caught(...)
  if type(failure) == "table" then
    local text = failure.err
    if type(text) == "string" or type(text) == "number" then
      failure = text
    end
  end
  return false, failure
end

local function after_catch(done, ...)
  if done then
    return true, ...
  end
  return false, caught(...)
end

local function kind_error(position, name, wanted, value)
  error(("bad argument #%d to '%s' (%s expected, got %s)"):format(position, name, wanted, type(value)), 3)
end

local globals = {}
for _, name in next, {
  "assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "tostring", "type", "_VERSION",
} do
  globals[name] = _G[name]
end

globals.pcall = function(...)
  return after_pcall(pcall(...))
end

-- Lua 5.1 counts the values of unpack in an `int` that overflows: a wide range would end the process. What is within
-- the bounds below Lua itself refuses or serves.
local INDEX_MIN, INDEX_MAX, VALUES_MAX = -2147483648, 2147483647, 8000
globals.unpack = function(list, first, last)
  if type(list) ~= "table" then
    kind_error(1, "unpack", "table", list)
  end
  local from, to = tonumber(first) or 1, tonumber(last) or #list
  if from > to then
    return
  end
  -- Said so that no comparison with NaN lets it through.
  if not (from >= INDEX_MIN and to <= INDEX_MAX and to - from < VALUES_MAX) then
    error("too many results to unpack", 2)
  end
  -- The bounds would count as values, of which there is a most.
  if first == nil and last == nil then
    return unpack(list)
  end
  return unpack(list, first, last)
end

globals.xpcall = function(call, handler)
  return after_catch(xpcall(call, function(failure)
    return handler(caught(failure))
  end))
end

globals.getmetatable = function(value)
  if real[value] then
    return guard[value]
  end
  if type(value) == "string" then
    return guard.string
  end
  return getmetatable(value)
end

globals.setmetatable = function(table, meta)
  if real[table] then
    error("Attempt to modify a readonly table", 0)
  end
  if type(table) ~= "table" then
    kind_error(1, "setmetatable", "table", table)
  end
  if type(meta) ~= "table" and meta ~= nil then
    error("bad argument #2 to 'setmetatable' (nil or table expected)", 2)
  end
  return setmetatable(table, meta)
end

globals.rawget = function(table, key)
  if type(table) ~= "table" then
    kind_error(1, "rawget", "table", table)
  end
  return rawget(real[table] or table, key)
end

globals.rawset = function(table, key, value)
  if real[table] then
    error("Attempt to modify a readonly table", 0)
  end
  if type(table) ~= "table" then
    kind_error(1, "rawset", "table", table)
  end
  return rawset(table, key, value)
end

globals.next = function(table, key)
  if type(table) ~= "table" then
    kind_error(1, "next", "table", table)
  end
  return next(real[table] or table, key)
end

globals.pairs = function(table)
  if type(table) ~= "table" then
    kind_error(1, "pairs", "table", table)
  end
  local hidden = real[table]
  if hidden then
    return function(_, key)
      return next(hidden, key)
    end, table, nil
  end
  return next, table, nil
end

globals.collectgarbage = function(what)
  if what == nil or what == "collect" or what == "count" then
    return collectgarbage(what)
  end
  return 0
end

globals.loadstring = function(text, name)
  local kind = type(text)
  if kind ~= "string" and kind ~= "number" then
    kind_error(1, "loadstring", "string", text)
  end
  return host.compile(text, name or text)
end

globals.load = function(source, name)
  if type(source) ~= "function" then
    kind_error(1, "load", "function", source)
  end
  local pieces, count = {}, 0
  while true do
    local piece = source()
    if piece == nil or piece == "" then
      break
    end
    if type(piece) ~= "string" then
      return nil, "reader function must return a string"
    end
    count = count + 1
    pieces[count] = piece
  end
  return host.compile(table.concat(pieces), name or "=(load)")
end

local coroutines = {}
for name, call in next, coroutine do
  coroutines[name] = call
end
local resume = coroutine.resume
coroutines.resume = function(...)
  return after_catch(resume(...))
end

local strings = {}
for name, call in next, string do
  strings[name] = call
end
strings.rep = host.rep
-- The matcher of Lua 5.1 recurses by the length of the pattern: a long one would end the process.
local PATTERN_BYTES_MAX = 2048
local function bounded(name, call)
  return function(text, pattern, ...)
    local kind, pattern_kind = type(text), type(pattern)
    if kind ~= "string" and kind ~= "number" then
      kind_error(1, name, "string", text)
    end
    if pattern_kind ~= "string" and pattern_kind ~= "number" then
      kind_error(2, name, "string", pattern)
    end
    if pattern_kind == "string" and #pattern > PATTERN_BYTES_MAX then
      local _, plain = ...
      if not (name == "find" and plain) then
        error("pattern too complex", 2)
      end
    end
    return call(text, pattern, ...)
  end
end
for _, name in next, { "find", "match", "gmatch", "gsub" } do
  strings[name] = bounded(name, string[name])
end
strings.gfind = strings.gmatch
local string_meta = getmetatable("")
string_meta.__index = strings
guard.string = stand_in(string_meta)

local maths = {}
for name, value in next, math do
  maths[name] = value
end
maths.random = host.random
maths.randomseed = host.randomseed

local tables = {}
for name, call in next, table do
  tables[name] = call
end

-- What a script may not have: raw writes through the functions of `table` are found and undone after each run.
local shared = {
  string = strings, math = maths, table = tables, coroutine = coroutines, redis = host.redis,
  cjson = host.cjson, cmsgpack = host.cmsgpack, struct = host.struct, bit = host.bit,
}
local stand_ins = {}
for name, value in next, shared do
  local it = stand_in(value)
  globals[name] = it
  stand_ins[#stand_ins + 1] = it
end

-- The environment of scripts, and the one of libraries: the real globals lie behind both. KEYS and ARGV are set in
-- `globals`; while a library is loaded its environment has nothing but `redis`, with what `host.library` has.
setmetatable(globals, missing_meta)
local script_env = stand_in(globals)
guard[script_env] = shown_meta
globals._G = script_env
local library_meta = { __index = globals, __newindex = refuse }
local library_env = setmetatable({}, library_meta)
real[library_env] = globals
guard[library_env] = stand_in(library_meta)
stand_ins[#stand_ins + 1] = script_env
stand_ins[#stand_ins + 1] = library_env

local library_redis = stand_in(setmetatable(host.library, missing_meta))
local loading = setmetatable({ redis = library_redis }, missing_meta)
stand_ins[#stand_ins + 1] = library_redis

local function tidy()
  for at = 1, #stand_ins do
    local it = stand_ins[at]
    while next(it) ~= nil do
      rawset(it, next(it), nil)
    end
  end
end

local function run(call, handler, keys, arguments)
  return xpcall(function()
    return call(keys, arguments)
  end, handler)
end

setfenv(0, script_env)
return {
  script_env = script_env,
  library_env = library_env,
  run = run,
  tidy = tidy,
  arguments = function(keys, values)
    rawset(globals, "KEYS", keys)
    rawset(globals, "ARGV", values)
  end,
  loading = function(is_loading)
    library_meta.__index = is_loading and loading or globals
  end,
}
