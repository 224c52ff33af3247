'use client'
/** The upload of one file: it continues by itself, or waits for the file to be chosen again after a reload. */
import type { ImportView, UploadView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { bytes, duration, percent } from '../../lib/format.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { Progress } from '../../ui/progress.tsx'
import { fingerprintOf } from './checking.ts'
import * as copy from './copy.ts'
import { FileButton } from './file-button.tsx'
import { pauseUpload, resumeUpload, startUpload, useUploads } from './uploading.ts'

type UploadRowProps = {
  readonly file: ImportView['files']['properties']
  readonly why: string | undefined
}

export function UploadRow({ file, why }: UploadRowProps) {
  const task = useUploads().get(file.upload)
  const received = Math.max(file.received, task?.offset ?? 0)
  const isDone = received >= file.bytes
  const state = isDone ? 'done' : (task?.state ?? 'elsewhere')
  const left = task && task.rate > 0 ? duration(((file.bytes - received) / task.rate) * 1000) : undefined
  const valueText = [
    copy.upload.receivedOf(bytes(received), bytes(file.bytes)),
    ...(task && task.rate > 0 && !isDone ? [copy.upload.rate(bytes(task.rate))] : []),
    ...(left && !isDone ? [copy.upload.left(left)] : []),
  ].join(' · ')
  return (
    <div data-upload={file.upload} data-upload-state={state} className="flex flex-col gap-2 py-2">
      <Progress label={file.name} value={file.bytes === 0 ? 1 : received / file.bytes} valueText={valueText} />
      <div className="flex flex-wrap items-center gap-2">
        {state === 'running' && (
          <Button icon="pause" onClick={() => pauseUpload(file.upload)}>
            {copy.upload.pause(file.name)}
          </Button>
        )}
        {(state === 'paused' || state === 'waiting' || state === 'failed') && (
          <Button icon="play" why={why} onClick={() => resumeUpload(file.upload)}>
            {copy.upload.resume(file.name)}
          </Button>
        )}
        {task && task.message !== '' && !isDone && (
          <p className={state === 'failed' ? 'text-crit' : 'text-text-2'}>{task.message}</p>
        )}
        {state === 'elsewhere' && <ChooseAgain file={file} why={why} />}
      </div>
    </div>
  )
}

/** After a reload browsers cannot read a file: choosing the same file again resumes its upload. */
function ChooseAgain({ file, why }: UploadRowProps) {
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const resume = async (chosen: File) => {
    setFault('')
    setBusy(true)
    try {
      const upload = await call('GET /api/v1/uploads/{id}', { params: { id: file.upload } })
      const wrong = await faultOf(upload, chosen)
      if (wrong !== '') return setFault(wrong)
      startUpload(upload, chosen)
      announce(copy.upload.resumesAt(file.name, percent(upload.offset / upload.bytes)), 'polite')
    } catch (error) {
      setFault((error as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <p className="text-text-2">{copy.upload.chooseHint(file.name, bytes(file.bytes))}</p>
      <FileButton why={why} busy={isBusy} onFiles={([chosen]) => void (chosen && resume(chosen))}>
        {copy.upload.choose(file.name)}
      </FileButton>
      {fault !== '' && (
        <p role="alert" className="text-crit">
          {fault}
        </p>
      )}
    </>
  )
}

async function faultOf(upload: UploadView, chosen: File): Promise<string> {
  if (chosen.size !== upload.bytes)
    return copy.upload.sizeDiffers(chosen.name, bytes(chosen.size), upload.name, bytes(upload.bytes))
  if ((await fingerprintOf(chosen)) === upload.fingerprint) return ''
  return copy.upload.contentDiffers(chosen.name)
}
