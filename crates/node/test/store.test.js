'use strict'

const assert = require('node:assert')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('node:test')
const { inspect, isDeepStrictEqual } = require('node:util')
const { Worker } = require('node:worker_threads')
const { ClassicLevel } = require('classic-level')
const { MemoryLevel } = require('memory-level')
const { DrumlinLevel } = require('..')

function folder (t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'drumlin-'))
  t.after(() => fs.rmSync(made, { recursive: true, force: true }))
  return path.join(made, 'db')
}

// Numbers below `most`, the same for the same seed.
function randomOf (seed) {
  return most => {
    seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0
    return ((seed ^ seed >>> 13) >>> 0) % most
  }
}

// `nextv` may give fewer where they are large.
async function take (iterator, size) {
  const taken = []
  while (taken.length < size) {
    const some = await iterator.nextv(size - taken.length)
    if (some.length === 0) break
    taken.push(...some)
  }
  return taken
}

const short = found => inspect(found, { maxStringLength: 12, maxArrayLength: 4, depth: 3 }).slice(0, 2000)

async function all (db, options) {
  const found = []
  for await (const [key, value] of db.iterator(options)) found.push([String(key), String(value)])
  return found
}

for (const format of ['rocksdb', 'leveldb']) {
  for (const encoding of ['utf8', 'buffer']) {
    test(`random programs beside memory-level: ${format}, ${encoding}`, async t => {
      const seed = Number(process.env.SEED ?? 1)
      const random = randomOf(seed)
      const options = { keyEncoding: encoding, valueEncoding: encoding }
      const textOf = text => encoding === 'utf8' ? text : Buffer.from(text)
      const theirs = new MemoryLevel(options)
      let ours = new DrumlinLevel(folder(t), { ...options, format, memoryBudget: 32 << 20 })
      const location = ours.location
      const key = () => textOf(['k', 'é', '\u{1f600}'][random(3)] + random(300))
      const bounds = () => {
        const bounds = { reverse: random(2) === 1 }
        if (random(2)) bounds[['gt', 'gte'][random(2)]] = key()
        if (random(2)) bounds[['lt', 'lte'][random(2)]] = key()
        if (random(3) === 0) bounds.limit = random(20)
        return bounds
      }
      const both = async (work, what) => {
        const [mine, other] = [await work(ours), await work(theirs)]
        // Not the values themselves, which are long.
        assert.ok(isDeepStrictEqual(mine, other), `${what} differs, seed ${seed}: ${short(mine)} is ${short(other)}`)
      }
      for (let i = 0; i < 3000; i++) {
        const what = random(16)
        const k = key()
        if (what < 4) {
          const value = textOf('v'.repeat(random(i % 100 === 0 ? 40000 : 50)) + i)
          await both(db => db.put(k, value), 'put')
        } else if (what === 4) {
          await both(db => db.del(k), 'del')
        } else if (what === 5) {
          const batch = []
          for (let j = random(50); j >= 0; j--) {
            batch.push(random(3) ? { type: 'put', key: key(), value: textOf('b' + j) } : { type: 'del', key: key() })
          }
          await both(db => db.batch(batch), 'batch')
        } else if (what < 8) {
          await both(db => db.get(k), 'get')
          await both(db => db.has(k), 'has')
          await both(db => Promise.resolve(db.getSync(k)), 'getSync')
        } else if (what === 8) {
          const keys = Array.from({ length: random(9) }, key)
          await both(db => db.getMany(keys), 'getMany')
          await both(db => db.hasMany(keys), 'hasMany')
        } else if (what < 12) {
          const range = bounds()
          await both(db => all(db, range), 'iterator')
          await both(db => db.keys(range).all(), 'keys')
          await both(db => db.values(range).all(), 'values')
        } else if (what === 12) {
          const range = bounds()
          const size = 1 + random(9)
          await both(async db => {
            const iterator = db.iterator(range)
            const found = [await iterator.next(), await take(iterator, size)]
            iterator.seek(k)
            found.push(await iterator.next(), await take(iterator, size), await iterator.next())
            await iterator.close()
            return found
          }, 'seek')
        } else if (what === 13 && i % 5 === 0) {
          const range = bounds()
          await both(db => db.clear(range), 'clear')
        } else if (what === 14 && i % 10 === 0) {
          await ours.compactRange(textOf('a'), textOf('\uffff'))
        } else if (what === 15 && i % 10 === 0) {
          await ours.close()
          ours = new DrumlinLevel(location, { ...options, memoryBudget: 32 << 20 })
        }
      }
      await both(db => all(db), 'the end')
      await both(db => db.close(), 'close')
    })
  }
}

test('reads that the disk has to answer', async t => {
  const db = new DrumlinLevel(folder(t), { valueEncoding: 'buffer', compression: false, memoryBudget: 16 << 20 })
  const count = 40000
  const key = i => String(i).padStart(8, '0')
  const value = i => Buffer.alloc(1000, i % 251)
  for (let i = 0; i < count; i += 500) {
    await db.batch(Array.from({ length: 500 }, (_, j) => ({ type: 'put', key: key(i + j), value: value(i + j) })))
  }
  await db.compactRange(key(0), '~')
  await db.close()
  await db.open()
  const random = randomOf(7)
  for (let i = 0; i < 500; i++) {
    const n = random(count)
    const [one, many, has] = await Promise.all([db.get(key(n)), db.getMany([key(n), 'none']), db.has(key(n))])
    assert.ok(one.equals(value(n)) && many[0].equals(value(n)) && many[1] === undefined && has)
  }
  for (const reverse of [false, true]) {
    let next = reverse ? count - 1 : 0
    for await (const [k, v] of db.iterator({ reverse })) {
      assert.strictEqual(k, key(next))
      assert.ok(v.equals(value(next)))
      next += reverse ? -1 : 1
    }
    assert.strictEqual(next, reverse ? -1 : count)
  }
  await db.close()
})

test("classic-level's directories, there and back", async t => {
  const location = folder(t)
  const theirs = new ClassicLevel(location)
  for (let i = 0; i < 1000; i++) await theirs.put('key' + i, 'theirs' + i)
  await theirs.close()
  const ours = new DrumlinLevel(location)
  assert.strictEqual((await all(ours)).length, 1000)
  await ours.put('key7', 'ours')
  await ours.clear({ gte: 'key8' })
  await ours.close()
  const again = new ClassicLevel(location)
  assert.strictEqual(await again.get('key7'), 'ours')
  assert.strictEqual((await all(again)).at(-1)[0], 'key799')
  await again.close()
})

test('what was not closed is there, and a second one is refused', async t => {
  const location = folder(t)
  const source = `const { DrumlinLevel } = require(${JSON.stringify(path.dirname(__dirname))})
    const db = new DrumlinLevel(${JSON.stringify(location)})
    db.put('a', '1').then(() => require('worker_threads').parentPort.postMessage('written'))
    setInterval(() => {}, 1000)`
  const worker = new Worker(source, { eval: true })
  await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const db = new DrumlinLevel(location)
  await assert.rejects(db.open(), error => error.cause.code === 'LEVEL_LOCKED')
  const reader = new DrumlinLevel(location, { readOnly: true, createIfMissing: false })
  assert.strictEqual(await reader.get('a'), '1')
  await assert.rejects(reader.put('a', '2'), { code: 'LEVEL_READ_ONLY' })
  await reader.close()
  await worker.terminate()
})

test('large keys and values, and synced writes', async t => {
  const db = new DrumlinLevel(folder(t))
  const key = 'k'.repeat(60000)
  const value = 'ä'.repeat(3 << 20)
  await db.put(key, value, { sync: true })
  assert.ok(await db.get(key) === value && db.getSync(key) === value && await db.has(key))
  assert.strictEqual((await db.iterator().all())[0][1], value)
  await db.batch().put('a', 'b').del(key).write({ sync: true })
  assert.deepStrictEqual(await all(db), [['a', 'b']])
  await db.close()
})

test('mistakes are named', async t => {
  const location = folder(t)
  for (const [options, about] of [
    [{ format: 'zip' }, /format "zip"/], [{ tableFormat: 'x' }, /tableFormat "x"/],
    [{ compression: 'x' }, /x/], [{ memoryBudget: -1 }, /memoryBudget is -1/], [{ maxOpenFiles: 'many' }, /maxOpenFiles|number/i]
  ]) {
    const db = new DrumlinLevel(location, options)
    await assert.rejects(db.open(), error => about.test(error.cause.message))
  }
  const db = new DrumlinLevel(location)
  await db.open()
  await db.put('a', '1')
  const iterator = db.iterator()
  const snapshot = db.snapshot()
  await db.put('a', '2')
  assert.strictEqual(await db.get('a', { snapshot }), '1')
  await db.close()
  await assert.rejects(iterator.next(), { code: 'LEVEL_ITERATOR_NOT_OPEN' })
  await assert.rejects(db.get('a'), { code: 'LEVEL_DATABASE_NOT_OPEN' })
  assert.throws(() => new DrumlinLevel(7), TypeError)
})

test('a database without its MANIFEST is repaired', async t => {
  const location = folder(t)
  const db = new DrumlinLevel(location)
  await db.put('a', '1')
  await db.compactRange('a', 'b')
  await db.close()
  for (const name of fs.readdirSync(location)) {
    if (/^(MANIFEST|CURRENT)/.test(name)) fs.rmSync(path.join(location, name))
  }
  await DrumlinLevel.repair(location)
  const repaired = new DrumlinLevel(location, { createIfMissing: false })
  assert.deepStrictEqual(await all(repaired), [['a', '1']])
  await repaired.close()
})

test('destroying leaves what is not of the database', async t => {
  const location = folder(t)
  const db = new DrumlinLevel(location)
  await db.put('a', '1')
  await db.close()
  fs.writeFileSync(path.join(location, 'notes.txt'), 'mine')
  await DrumlinLevel.destroy(location)
  assert.deepStrictEqual(fs.readdirSync(location), ['notes.txt'])
})
