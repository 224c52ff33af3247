// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { jobCommand, topicCommand } from './curl.ts'

test('the commands post to the origin of the console, with a body that the shell does not read', () => {
  location.href = 'https://console.example:8443/queue'

  expect(topicCommand("it's $HOME")).toBe(
    `curl -s --oauth2-bearer "$TOKEN" --json @- https://console.example:8443/producer/topic <<'END'\n{"topic":"it's $HOME"}\nEND`,
  )
  expect(jobCommand({ id: 'a', topic: 't', priority: 3 })).toBe(
    `curl -s --oauth2-bearer "$TOKEN" --json @- https://console.example:8443/producer/jobs <<'END'\n{"job":{"id":"a","topic":"t","priority":3}}\nEND`,
  )
})
