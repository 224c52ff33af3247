/** Replicated settings on the leader: a change is an entry of the log, so all replicas follow it at one index. */

import { KIND } from '../store/command.ts'
import { encodeSetting, isStaySetting, levelOfSetting, settingFault } from '../store/stay-settings.ts'
import { proposeOwn } from './proposals.ts'
import type { Replica } from './replica-state.ts'

export type SettingAnswer = { readonly status: 202 | 409 | 503; readonly text: string }

/** The value is within the bounds of its row (http/node.ts). */
export function changeSetting(replica: Replica, name: string, value: number): SettingAnswer {
  const fault = settingFault(name, value)
  if (fault !== '' || !isStaySetting(name)) return { status: 409, text: fault }
  const level = levelOfSetting(name)
  if (replica.machine.featureLevel() < level) {
    const text = `${name} cannot be changed below feature level ${level}. Change it once all members run this version.`
    return { status: 409, text }
  }
  if (!proposeOwn(replica, KIND.setting, encodeSetting(name, value))) return { status: 503, text: 'no leader' }
  return { status: 202, text: `${name} = ${value} was proposed` }
}
