'use client'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { JobDetails, JobState, UnknownJob } from './job-details.tsx'
import { useJob } from './queries.ts'

/** One job with a page of its own, for links. */
export function JobPage({ topic, id }: { readonly topic: string; readonly id: string }) {
  const query = useJob(topic, id)
  const isUnknown = query.error instanceof ApiProblem && query.error.status === 404
  return (
    <Page
      id="queue-job"
      title={isUnknown ? copy.job.unknownTitle : id}
      where={topic}
      ready={!query.isPending}
      crumbs={[
        { href: routes.queue(), label: copy.common.queue },
        { href: routes.topic(topic), label: topic },
      ]}
      badge={query.data && !isUnknown && <JobState state={query.data.state} />}
    >
      {isUnknown ? (
        <UnknownJob topic={topic} id={id} />
      ) : (
        <Panel title={copy.job.panel} hideTitle query={query} skeleton={10}>
          {(job) => <JobDetails job={job} />}
        </Panel>
      )}
    </Page>
  )
}
