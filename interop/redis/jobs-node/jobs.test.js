// Libraries of jobs that keep their state in Redis, against the server at REDIS_ADDR.
const { test } = require('node:test');
const assert = require('node:assert');
const { randomUUID } = require('node:crypto');
const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');
const Bull = require('bull');
const BeeQueue = require('bee-queue');

const [host, port] = (process.env.REDIS_ADDR ?? '127.0.0.1:6379').split(':');
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const fresh = (name) => `${name}-${randomUUID().slice(0, 8)}`;
const PATIENCE = 20_000;

// A worker that adds two numbers, or first fails twice, and its tries of each job.
function worker() {
  const tries = new Map();
  const work = async (job) => {
    const count = (tries.get(job.id) ?? 0) + 1;
    tries.set(job.id, count);
    if (job.data.fails && count < 3) throw new Error('it fails');
    return job.data.one + job.data.other;
  };
  return { tries, work };
}

test('BullMQ', { timeout: 60_000 }, async () => {
  const name = fresh('bullmq');
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  await events.waitUntilReady();
  const progress = [];
  events.on('progress', ({ data }) => progress.push(data));
  const tries = new Map();
  const work = async (job) => {
    await job.updateProgress(50);
    const count = (tries.get(job.id) ?? 0) + 1;
    tries.set(job.id, count);
    if (job.name === 'third time' && count < 3) throw new Error('it fails');
    if (job.name === 'never') throw new Error('it fails for good');
    return (job.data.one ?? 0) + (job.data.other ?? 0);
  };
  const worker = new Worker(name, work, { connection, concurrency: 2 });
  const done = (job) => job.waitUntilFinished(events, PATIENCE);
  const first = await queue.add('sum', { one: 2, other: 3 });
  const late = await queue.add('sum', { one: 1, other: 1 }, { delay: 500 });
  const urgent = await queue.add('sum', { one: 7, other: 7 }, { priority: 1 });
  assert.deepEqual(await Promise.all([first, late, urgent].map(done)), [5, 2, 14]);
  const again = { attempts: 3, backoff: 50 };
  await done(await queue.add('third time', {}, again));
  await assert.rejects(done(await queue.add('never', {}, { attempts: 2 })), /fails for good/);
  const flows = new FlowProducer({ connection });
  const children = [1, 2].map((one) => ({ name: 'sum', queueName: name, data: { one } }));
  const flow = await flows.add({ name: 'sum', queueName: name, data: { one: 9 }, children });
  assert.equal(await done(flow.job), 9);
  assert.deepEqual(Object.values(await flow.job.getChildrenValues()).sort(), [1, 2]);
  await queue.upsertJobScheduler('often', { every: 200 }, { name: 'sum', data: { one: 1 } });
  const before = tries.size;
  const end = Date.now() + PATIENCE;
  while (tries.size < before + 3) {
    assert.ok(Date.now() < end, 'a repeated job runs');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await queue.removeJobScheduler('often');
  assert.ok(progress.length > 5);
  assert.equal((await queue.getJobCounts()).failed, 1);
  await Promise.all([worker.close(), events.close(), flows.close()]);
  await queue.obliterate({ force: true });
  await queue.close();
});

test('Bull', { timeout: 60_000 }, async () => {
  const queue = new Bull(fresh('bull'), { redis: { host, port: Number(port) } });
  const { tries, work } = worker();
  queue.process(work);
  const first = await queue.add({ one: 2, other: 3 });
  const late = await queue.add({ one: 1, other: 1 }, { delay: 500 });
  const third = await queue.add({ one: 0, other: 0, fails: true }, { attempts: 3, backoff: 50 });
  assert.deepEqual(await Promise.all([first, late, third].map((job) => job.finished())), [5, 2, 0]);
  assert.equal(tries.get(third.id), 3);
  await queue.close();
});

test('bee-queue', { timeout: 60_000 }, async () => {
  const redis = { host, port: Number(port), db: 2 };
  const queue = new BeeQueue(fresh('bee'), { redis, activateDelayedJobs: true });
  const { tries, work } = worker();
  queue.process(work);
  const done = (job) => new Promise((resolve) => job.on('succeeded', resolve));
  const first = queue.createJob({ one: 2, other: 3 });
  const late = queue.createJob({ one: 1, other: 1 }).delayUntil(Date.now() + 500);
  const third = queue.createJob({ one: 0, other: 0, fails: true }).retries(2);
  const jobs = [first, late, third];
  const results = Promise.all(jobs.map(done));
  for (const job of jobs) await job.save();
  assert.deepEqual(await results, [5, 2, 0]);
  await queue.close();
});
