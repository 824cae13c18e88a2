-- The writing half of `cjson`, and its settings. It recurses in Lua, where a limit of calls holds.
local host = ...
local type, next, floor, concat, format = type, next, math.floor, table.concat, string.format
local error, tostring, rawget, INT_MAX = error, tostring, rawget, 2147483647
local quote, null = host.quote, host.null

local new

local function setting(name, value, least, most)
  if type(value) ~= "number" then
    error("bad argument #1 to '" .. name .. "' (number expected, got " .. type(value) .. ")", 3)
  end
  if value < least or value > most then
    error(format("bad argument #1 to '%s' (expected integer between %d and %d)", name, least, most), 3)
  end
  return floor(value)
end

local function switch(name, value, more)
  if type(value) == "boolean" then
    return value
  end
  if value == "on" or value == "off" then
    return value == "on"
  end
  if more and value == more then
    return value
  end
  error(format("bad argument #1 to '%s' (invalid option '%s')", name, tostring(value)), 3)
end

function new()
  local codec = { null = null, _NAME = "cjson", _VERSION = "2.1.0", new = new }
  local sparse, ratio, safe = false, 2, 10
  local depth_max, decode_depth_max = 1000, 1000
  local number_format, precision = "%.14g", 14
  local invalid, decode_invalid, keeps = false, true, true

  local function number(value)
    if value ~= value or value == 1 / 0 or value == -1 / 0 then
      if invalid == false then
        return nil, "Cannot serialise number: must not be NaN or Inf"
      elseif invalid == "null" then
        return "null"
      elseif value ~= value then
        return "nan"
      end
    end
    return format(number_format, value)
  end

  -- The largest index if the table is an array, or nil; and an error.
  local function array_length(table)
    local most, items = 0, 0
    for key in next, table do
      if type(key) ~= "number" or floor(key) ~= key or key < 1 then
        return nil
      end
      if key > most then
        most = key
      end
      items = items + 1
    end
    if ratio > 0 and most > items * ratio and most > safe then
      if not sparse then
        return nil, "Cannot serialise table: excessively sparse array"
      end
      return nil
    end
    return most > 0 and most or nil
  end

  -- Appends `value` to the pieces; returns their number, or nil and an error.
  local function append(pieces, count, value, depth)
    local kind = type(value)
    if kind == "string" then
      pieces[count + 1] = quote(value)
      return count + 1
    elseif kind == "number" then
      local text, failure = number(value)
      pieces[count + 1] = text
      return text and count + 1, failure
    elseif kind == "boolean" then
      pieces[count + 1] = value and "true" or "false"
      return count + 1
    elseif value == nil or value == null then
      pieces[count + 1] = "null"
      return count + 1
    elseif kind ~= "table" then
      return nil, "Cannot serialise " .. kind .. ": type not supported"
    end
    depth = depth + 1
    if depth > depth_max then
      return nil, format("Cannot serialise, excessive nesting (%d)", depth)
    end
    local length, failure = array_length(value)
    if failure then
      return nil, failure
    end
    if length then
      for at = 1, length do
        count = count + 1
        pieces[count] = at == 1 and "[" or ","
        count, failure = append(pieces, count, rawget(value, at), depth)
        if not count then
          return nil, failure
        end
      end
      pieces[count + 1] = "]"
      return count + 1
    end
    local mark = "{"
    for key, item in next, value do
      local name
      local key_kind = type(key)
      if key_kind == "string" then
        name = quote(key)
      elseif key_kind == "number" then
        name, failure = number(key)
        if not name then
          return nil, failure
        end
        name = '"' .. name .. '"'
      else
        return nil, "Cannot serialise " .. key_kind .. ": table key must be a number or string"
      end
      pieces[count + 1], pieces[count + 2], pieces[count + 3] = mark, name, ":"
      mark = ","
      count, failure = append(pieces, count + 3, item, depth)
      if not count then
        return nil, failure
      end
    end
    pieces[count + 1] = mark == "{" and "{}" or "}"
    return count + 1
  end

  codec.encode = host.encoder(function(value)
    local pieces = {}
    local count, failure = append(pieces, 0, value, 0)
    if not count then
      return nil, failure
    end
    return concat(pieces, "", 1, count)
  end)

  codec.decode = host.decoder(function()
    return decode_depth_max, decode_invalid
  end)

  codec.encode_sparse_array = function(convert, by, from)
    if convert ~= nil then
      sparse = switch("encode_sparse_array", convert)
    end
    if by ~= nil then
      ratio = setting("encode_sparse_array", by, 0, INT_MAX)
    end
    if from ~= nil then
      safe = setting("encode_sparse_array", from, 0, INT_MAX)
    end
    return sparse, ratio, safe
  end

  codec.encode_max_depth = function(depth)
    if depth ~= nil then
      depth_max = setting("encode_max_depth", depth, 1, INT_MAX)
    end
    return depth_max
  end

  codec.decode_max_depth = function(depth)
    if depth ~= nil then
      decode_depth_max = setting("decode_max_depth", depth, 1, INT_MAX)
    end
    return decode_depth_max
  end

  codec.encode_number_precision = function(digits)
    if digits ~= nil then
      precision = setting("encode_number_precision", digits, 1, 14)
      number_format = "%." .. precision .. "g"
    end
    return precision
  end

  codec.encode_keep_buffer = function(value)
    if value ~= nil then
      keeps = switch("encode_keep_buffer", value)
    end
    return keeps
  end

  codec.encode_invalid_numbers = function(value)
    if value ~= nil then
      invalid = switch("encode_invalid_numbers", value, "null")
    end
    return invalid
  end

  codec.decode_invalid_numbers = function(value)
    if value ~= nil then
      decode_invalid = switch("decode_invalid_numbers", value)
    end
    return decode_invalid
  end

  return codec
end

return new
