'use strict'

// The same calls on this store and on classic-level, in turn: node bench.js [keys] [rounds]
// Prints thousand operations a second and the median ratio with the least and the most, by the clock and by the
// processor time of all threads, which other work on the machine disturbs less.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { ClassicLevel } = require('classic-level')
const { DrumlinLevel } = require('.')

const keys = Number(process.argv[2] ?? 200_000)
const rounds = Number(process.argv[3] ?? 5)
const stores = {
  drumlin: (at, options) => new DrumlinLevel(at, { memoryBudget: 256 << 20, ...options }),
  'classic-level': (at, options) => new ClassicLevel(at, { cacheSize: 256 << 20, ...options })
}

async function round (make, encoding, note) {
  const at = fs.mkdtempSync(path.join(os.tmpdir(), 'drumlin-bench-'))
  const db = make(at, { keyEncoding: encoding, valueEncoding: encoding })
  const textOf = encoding === 'utf8' ? text => text : Buffer.from
  const key = i => textOf(String(i * 7919 % keys).padStart(16, '0'))
  const value = encoding === 'utf8' ? 'v'.repeat(100) : Buffer.alloc(100, 'v')
  const timed = async (what, operations, work) => {
    const begun = process.hrtime.bigint()
    const used = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(used)
    note(what, {
      speed: operations / (Number(process.hrtime.bigint() - begun) / 1e6),
      micros: (user + system) / operations
    })
  }
  await db.open()
  const some = keys / 4
  await timed('put', some, async () => {
    for (let i = 0; i < some; i++) await db.put(key(i), value)
  })
  await timed('batches of 1,000', keys, async () => {
    for (let i = 0; i < keys; i += 1000) {
      const batch = []
      for (let j = i; j < i + 1000; j++) batch.push({ type: 'put', key: key(j), value })
      await db.batch(batch)
    }
  })
  await db.compactRange(key(0), textOf('~'))
  await timed('get', some, async () => {
    for (let i = 0; i < some; i++) await db.get(key(i))
  })
  await timed('get, 100 at a time', some, async () => {
    for (let i = 0; i < some; i += 100) {
      const found = []
      for (let j = i; j < i + 100; j++) found.push(db.get(key(j)))
      await Promise.all(found)
    }
  })
  await timed('getSync', some, async () => {
    for (let i = 0; i < some; i++) db.getSync(key(i))
  })
  await timed('getMany of 100', some, async () => {
    for (let i = 0; i < some; i += 100) {
      const many = []
      for (let j = i; j < i + 100; j++) many.push(key(j))
      await db.getMany(many)
    }
  })
  const count = (found) => {
    if (found !== keys) throw new Error(`${found} of ${keys} entries`)
  }
  await timed('for await', keys, async () => {
    let found = 0
    for await (const [key, value] of db.iterator()) found += key.length > 0 && value.length === 100 ? 1 : 0
    count(found)
  })
  await timed('nextv(1000)', keys, async () => {
    let found = 0
    const iterator = db.iterator()
    for (;;) {
      const entries = await iterator.nextv(1000)
      if (entries.length === 0) break
      found += entries.length
    }
    await iterator.close()
    count(found)
  })
  await db.close()
  fs.rmSync(at, { recursive: true })
}

const middle = numbers => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]
const range = ratios => `${middle(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(1)}-${Math.max(...ratios).toFixed(1)})`

async function main () {
  console.log('thousand a second: drumlin, classic-level, times as many; microseconds each: drumlin, classic-level, times less')
  for (const encoding of ['utf8', 'buffer']) {
    const figures = {}
    for (let i = 0; i < rounds; i++) {
      for (const [name, make] of Object.entries(stores)) {
        await round(make, encoding, (what, figure) => ((figures[what] ??= {})[name] ??= []).push(figure))
      }
    }
    for (const [what, { drumlin, 'classic-level': classic }] of Object.entries(figures)) {
      const columns = ['speed', 'micros'].map(of => {
        const [ours, theirs] = [drumlin, classic].map(figures => figures.map(figure => figure[of]))
        const ratios = ours.map((ours, i) => of === 'speed' ? ours / theirs[i] : theirs[i] / ours)
        const digits = of === 'speed' ? 0 : 2
        return `${middle(ours).toFixed(digits).padStart(6)} ${middle(theirs).toFixed(digits).padStart(6)}  ${range(ratios).padEnd(16)}`
      })
      console.log(`${encoding.padEnd(7)} ${what.padEnd(19)} ${columns.join('  ')}`)
    }
  }
}

main()
