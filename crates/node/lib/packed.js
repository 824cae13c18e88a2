'use strict'

// Keys and values packed into one buffer, as src/frames.rs has them.

const NONE = 0xffffffff

// The bytes of a buffer of which the front is written, and grows.
class Packer {
  constructor () {
    this.bytes = Buffer.allocUnsafeSlow(64 << 10)
    this.length = 0
  }

  // Room for so many bytes more.
  #grow (more) {
    const needed = this.length + more
    if (needed <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.bytes.length * 2))
    this.bytes.copy(larger, 0, 0, this.length)
    this.bytes = larger
  }

  // A string is UTF-8, of at most three bytes for each of its units.
  #add (data) {
    if (typeof data === 'string') {
      this.length += this.bytes.utf8Write(data, this.length)
    } else {
      this.bytes.set(data, this.length)
      this.length += data.byteLength
    }
  }

  #setLength (at, length) {
    const bytes = this.bytes
    bytes[at] = length
    bytes[at + 1] = length >>> 8
    bytes[at + 2] = length >>> 16
    bytes[at + 3] = length >>> 24
  }

  clear () {
    this.length = 0
    // What one large batch needed is not kept.
    if (this.bytes.length > 4 << 20) this.bytes = Buffer.allocUnsafeSlow(64 << 10)
  }

  key (key) {
    this.#grow(4 + most(key))
    const at = this.length
    this.length += 4
    this.#add(key)
    this.#setLength(at, this.length - at - 4)
  }

  put (key, value) {
    this.#grow(9 + most(key) + most(value))
    const at = this.length
    this.bytes[at] = 1
    this.length += 9
    this.#add(key)
    const keyEnd = this.length
    this.#add(value)
    this.#setLength(at + 1, keyEnd - at - 9)
    this.#setLength(at + 5, this.length - keyEnd)
  }

  del (key) {
    this.#grow(5 + most(key))
    const at = this.length
    this.bytes[at] = 0
    this.length += 5
    this.#add(key)
    this.#setLength(at + 1, this.length - at - 5)
  }

  // What was packed, until something else is.
  packed () {
    return this.bytes.subarray(0, this.length)
  }
}

function most (data) {
  return typeof data === 'string' ? data.length * 3 : data.byteLength
}

function lengthAt (bytes, at) {
  return (bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24) >>> 0
}

function decoded (bytes, from, to, asText) {
  return asText ? bytes.utf8Slice(from, to) : bytes.subarray(from, to)
}

// Packed values, `undefined` where there is none.
function values (bytes, asText) {
  const found = []
  for (let at = 0; at < bytes.length;) {
    const length = lengthAt(bytes, at)
    at += 4
    if (length === NONE) {
      found.push(undefined)
    } else {
      found.push(decoded(bytes, at, at + length, asText))
      at += length
    }
  }
  return found
}

module.exports = { Packer, values, lengthAt, decoded }
