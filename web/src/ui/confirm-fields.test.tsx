// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { useState } from 'react'
import { describe, expect, test } from 'vitest'
import { missingConfirmation, ReasonField, TypedField } from './confirm-fields.tsx'
import { user } from './testing/dom.ts'

function Confirm() {
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  return (
    <>
      <TypedField text="s3" value={typed} onChange={setTyped} />
      <ReasonField value={reason} onChange={setReason} />
      <output>{missingConfirmation({ text: 's3', typed, reason }) ?? 'complete'}</output>
    </>
  )
}
const status = () => screen.getByRole('status').textContent

describe('confirmation', () => {
  test('needs the name typed, then a reason of eight characters', async () => {
    render(<Confirm />)
    const person = user()
    expect(status()).toBe('Type s3 first')
    await person.type(screen.getByRole('textbox', { name: 'Type s3 to confirm (required)' }), ' s3 ')
    expect(status()).toBe('Enter a reason of at least 8 characters')
    const reason = screen.getByRole('textbox', { name: 'Reason (recorded in the audit log) (required)' })
    await person.type(reason, ' drills ')
    expect(status()).toBe('Enter a reason of at least 8 characters')
    await person.clear(reason)
    await person.type(reason, 'drill 12')
    expect(status()).toBe('complete')
  })

  test('another name or another case does not confirm', async () => {
    render(<Confirm />)
    const person = user()
    const name = screen.getByRole('textbox', { name: /Type s3/ })
    for (const wrong of ['S3', 's33', 's']) {
      await person.clear(name)
      await person.type(name, wrong)
      expect(status()).toBe('Type s3 first')
    }
  })

  test('without a name only the reason is needed', () => {
    expect(missingConfirmation({ reason: 'a planned drill' })).toBeUndefined()
    expect(missingConfirmation({ reason: '' })).toBe('Enter a reason of at least 8 characters')
  })
})
