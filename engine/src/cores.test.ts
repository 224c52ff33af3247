import { availableParallelism } from 'node:os'
import { expect, test } from 'vitest'
import { usableCores } from './cores.ts'

const V2 = { '/proc/self/cgroup': '0::/pod/one\n' }
const V1 = { '/proc/self/cgroup': '5:memory:/\n4:cpu,cpuacct:/docker/ab\n0::/\n' }
const v2 = (quota: string, at = '/pod/one') => ({ ...V2, [`/sys/fs/cgroup${at}/cpu.max`]: `${quota}\n` })
const v1 = (quota: string, at = '/cpu,cpuacct/docker/ab') => ({
  ...V1,
  [`/sys/fs/cgroup${at}/cpu.cfs_quota_us`]: `${quota}\n`,
  [`/sys/fs/cgroup${at}/cpu.cfs_period_us`]: '100000\n',
})

test.each<[string, { readonly [file: string]: string }, number]>([
  ['no control group', {}, 6],
  ['no quota', v2('max 100000'), 6],
  ['half a core', v2('50000 100000'), 1],
  ['one core', v2('100000 100000'), 1],
  ['one and a half cores', v2('150000 100000'), 2],
  ['a hundredth above two', v2('101000 50000'), 3],
  ['more than the machine has', v2('1600000 100000'), 6],
  ['a quota of the group above', v2('250000 100000', '/pod'), 3],
  ['its own group as the root, as in a container', v2('150000 100000', ''), 2],
  ['the smaller of two quotas', { ...v2('450000 100000'), ...v2('150000 100000', '/pod') }, 2],
  ['no quota in the first version', v1('-1'), 6],
  ['one and a half cores in the first version', v1('150000'), 2],
  ['a container of the first version', v1('350000', '/cpu'), 4],
])('of six cores, with %s, the process uses as many as the quota rounded up', (_, files, cores) => {
  const all = { '/proc/self/status': 'Name:\tnode\nCpus_allowed_list:\t0-3,8,12\n', ...files }
  expect(usableCores((file) => all[file as keyof typeof all] ?? '')).toBe(cores)
})

test('where the system shows neither, Node is asked', () => {
  expect(usableCores(() => '')).toBe(availableParallelism())
})
