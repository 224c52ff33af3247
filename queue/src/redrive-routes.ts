/** The paths of long redrives. */

import type { Handlers } from '@vacancy/shared/api/route'
import type { QUEUE_ROUTES, RedriveState, RedriveView } from '@vacancy/shared/contract'
import type { Redrive, Topic } from './job.ts'
import { outcomeOf, runSoon } from './partition.ts'
import {
  durable,
  type QueueAudit,
  QueueError,
  type QueueServer,
  refuseFullDisk,
  type Serving,
  servingOf,
  topicOf,
  withReason,
} from './queue-server.ts'
import { beginRedrive, isRedriveOpen, redriveView, setRedriveState } from './redrive.ts'
import { runRedrive } from './redrive-runner.ts'
import type { Group } from './state.ts'

type RedriveRoutes = Pick<typeof QUEUE_ROUTES, Extract<keyof typeof QUEUE_ROUTES, `${string}/redrive${string}`>>
type RedriveOptions = { readonly server: QueueServer; readonly audit: QueueAudit }
type AnyRequest = { readonly params: { readonly topic: string } }

export function redriveHandlers({
  server,
  audit,
}: RedriveOptions): Omit<Handlers<RedriveRoutes>, 'POST /api/v1/queue/topics/{topic}/dead/redrive'> {
  const found = (name: string) => {
    const serving = servingOf(server, name)
    return { serving, topic: topicOf(serving, name) }
  }
  const change = async (request: AnyRequest, state: RedriveState, action: string): Promise<RedriveView> => {
    const { serving, topic } = found(request.params.topic)
    const redrive = openRedrive(topic)
    if (redrive.record.state !== state) await stored(serving, setRedriveState(serving.queue, topic, state, serving.now))
    if (state === 'running') runRedrive(serving.partition, topic)
    await audit(request as never, action, topic.name, '')
    return redriveView(topic, redrive)
  }
  return {
    'POST /api/v1/queue/topics/{topic}/redrive': async (request) => {
      const { serving, topic } = found(request.params.topic)
      const { filter, to, ratePerSec } = request.body
      refuseFullDisk(serving.partition)
      if (isRedriveOpen(topic))
        throw new QueueError(
          'redrive_running',
          `a redrive of topic "${topic.name}" is running. Cancel it, or wait until it ends`,
        )
      const target = to === topic.name ? undefined : to
      if (target !== undefined) requireTarget(serving, servingOf(server, target), target)
      const by = request.principal.name
      await stored(serving, beginRedrive(serving.queue, topic, { filter, to: target, ratePerSec, by }, serving.now))
      runRedrive(serving.partition, topic)
      const view = redriveView(topic, topic.redrive as Redrive)
      const detail = withReason(`${view.total} jobs, ${ratePerSec} a second`, request.body)
      await audit(request as never, 'queue.redrive.begin', topic.name, detail)
      return view
    },
    'GET /api/v1/queue/topics/{topic}/redrive': ({ params }) => {
      const { topic } = found(params.topic)
      return { redrive: topic.redrive === undefined ? null : redriveView(topic, topic.redrive) }
    },
    'POST /api/v1/queue/topics/{topic}/redrive/pause': (request) =>
      change(request as never, 'paused', 'queue.redrive.pause'),
    'POST /api/v1/queue/topics/{topic}/redrive/resume': (request) =>
      change(request as never, 'running', 'queue.redrive.resume'),
    'POST /api/v1/queue/topics/{topic}/redrive/cancel': (request) =>
      change(request as never, 'cancelled', 'queue.redrive.cancel'),
  }
}

function requireTarget(serving: Serving, target: Serving, name: string): void {
  if (target.partition !== serving.partition)
    throw new QueueError(
      'invalid_request',
      'the topics are in different partitions: a job cannot move in one transaction',
    )
  topicOf(target, name)
}

function openRedrive(topic: Topic): Redrive {
  if (topic.redrive === undefined || !isRedriveOpen(topic))
    throw new QueueError('not_found', `no redrive of topic "${topic.name}" is open`)
  return topic.redrive
}

async function stored(serving: Serving, group: Group): Promise<void> {
  const outcome = outcomeOf(group, false)
  runSoon(serving.partition)
  await durable([outcome])
}
