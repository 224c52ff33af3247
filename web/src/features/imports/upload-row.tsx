'use client'
/** One file of an import on its way: goes on by itself, or waits for the file to be chosen again after a reload. */
import type { ImportView, UploadView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { bytes, duration, percent } from '../../lib/format.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { Progress } from '../../ui/progress.tsx'
import { fingerprintOf } from './checking.ts'
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
    `${bytes(received)} of ${bytes(file.bytes)}`,
    ...(task && task.rate > 0 && !isDone ? [`${bytes(task.rate)}/s`] : []),
    ...(left && !isDone ? [`${left} left`] : []),
  ].join(' · ')
  return (
    <div data-upload={file.upload} data-upload-state={state} className="flex flex-col gap-2 py-2">
      <Progress label={file.name} value={file.bytes === 0 ? 1 : received / file.bytes} valueText={valueText} />
      <div className="flex flex-wrap items-center gap-2">
        {state === 'running' && (
          <Button icon="pause" onClick={() => pauseUpload(file.upload)}>
            Pause {file.name}
          </Button>
        )}
        {(state === 'paused' || state === 'waiting' || state === 'failed') && (
          <Button icon="play" why={why} onClick={() => resumeUpload(file.upload)}>
            Resume {file.name}
          </Button>
        )}
        {task && task.says !== '' && !isDone && (
          <p className={state === 'failed' ? 'text-crit' : 'text-text-2'}>{task.says}</p>
        )}
        {state === 'elsewhere' && <ChooseAgain file={file} why={why} />}
      </div>
    </div>
  )
}

/** Browsers cannot read a file any more after a reload: the same one is chosen again, and goes on where it was. */
function ChooseAgain({ file, why }: UploadRowProps) {
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const goOn = async (chosen: File) => {
    setFault('')
    setBusy(true)
    try {
      const upload = await call('GET /api/v1/uploads/{id}', { params: { id: file.upload } })
      const wrong = await faultOf(upload, chosen)
      if (wrong !== '') return setFault(wrong)
      startUpload(upload, chosen)
      announce(`${file.name} continues at ${percent(upload.offset / upload.bytes)}`, 'polite')
    } catch (error) {
      setFault((error as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <p className="text-text-2">
        Waits for the file, unless another tab or computer sends it. Choose {file.name} ({bytes(file.bytes)}) again: it
        goes on where it was.
      </p>
      <FileButton why={why} busy={isBusy} onFiles={([chosen]) => void (chosen && goOn(chosen))}>
        Choose {file.name} again
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
    return `${chosen.name} has ${bytes(chosen.size)}, ${upload.name} had ${bytes(upload.bytes)}.`
  if ((await fingerprintOf(chosen)) === upload.fingerprint) return ''
  return `${chosen.name} has the same size, but another content than what was begun.`
}
