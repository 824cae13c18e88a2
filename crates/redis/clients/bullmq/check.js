// A thousand jobs by BullMQ: priorities, delays, retries, a flow, repeated and stalled jobs, and the server killed while they run.
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { FlowProducer, Queue, QueueEvents, Worker } = require('bullmq');

const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null };
const pause = (ms) => new Promise((go) => setTimeout(go, ms));
const queue = new Queue('jobs', { connection });
const events = new QueueEvents('jobs', { connection });
const tries = new Map();
const worker = new Worker(
  'jobs',
  async (job) => {
    tries.set(job.id, (tries.get(job.id) ?? 0) + 1);
    if (job.name === 'fails-twice' && tries.get(job.id) < 3) throw new Error('again');
    if (job.name === 'sum') return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0);
    await job.updateProgress(50);
    return (job.data.n ?? 0) * 2;
  },
  { connection, concurrency: 20 },
);
for (const emitter of [queue, events, worker]) emitter.on('error', () => {});

async function aThousandJobs() {
  await events.waitUntilReady();
  const jobs = await queue.addBulk(Array.from({ length: 1000 }, (_, n) => ({ name: 'double', data: { n } })));
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 120000)));
  assert(results.every((result, n) => result === 2 * n));
  assert.equal((await queue.getJobCounts('completed')).completed, 1000);
}

async function prioritiesAndDelays() {
  const jobs = await Promise.all([
    queue.add('double', { n: 1 }, { priority: 5 }),
    queue.add('double', { n: 2 }, { delay: 300 }),
    queue.add('double', { n: 3 }, { lifo: true }),
  ]);
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 60000)));
  assert.deepEqual(results, [2, 4, 6]);
}

async function retries() {
  const job = await queue.add('fails-twice', {}, { attempts: 5, backoff: { type: 'fixed', delay: 50 } });
  await job.waitUntilFinished(events, 60000);
  assert.equal(tries.get(job.id), 3);
}

async function aFlow() {
  const flow = new FlowProducer({ connection });
  const children = Array.from({ length: 20 }, (_, n) => ({ name: 'double', queueName: 'jobs', data: { n } }));
  const { job } = await flow.add({ name: 'sum', queueName: 'jobs', children });
  assert.equal(await job.waitUntilFinished(events, 60000), 380);
  await flow.close();
}

async function aSchedule() {
  await queue.upsertJobScheduler('tick', { every: 100, limit: 3 }, { name: 'tick', data: { n: 21 } });
  let done = [];
  for (let i = 0; i < 300 && done.length < 3; i++) {
    await pause(50);
    done = (await queue.getJobs(['completed'])).filter((job) => job.name === 'tick');
  }
  assert.equal(done.length, 3);
}

async function aKillInBetween() {
  const jobs = await queue.addBulk(Array.from({ length: 300 }, (_, n) => ({ name: 'double', data: { n } })));
  execFileSync(process.env.RESTART_SERVER, { stdio: 'ignore' });
  const states = async () => {
    try {
      return await Promise.all(jobs.map((job) => job.getState()));
    } catch {
      return [];
    }
  };
  for (let i = 0; i < 1200; i++) {
    const all = await states();
    if (all.length && all.every((state) => state === 'completed')) return;
    await pause(100);
  }
  assert.fail(JSON.stringify(await queue.getJobCounts()));
}

async function cleaned() {
  await queue.obliterate({ force: true });
  assert.deepEqual(await queue.getJobCounts('completed', 'wait', 'failed'), { completed: 0, wait: 0, failed: 0 });
}

require(process.env.CHECKS)([
  aThousandJobs, prioritiesAndDelays, retries, aFlow, aSchedule, aKillInBetween, cleaned,
]);
