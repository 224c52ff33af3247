// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { describe, expect, test } from 'vitest'
import { AttentionContext, Page } from './page.tsx'
import './testing/dom.ts'

const main = () => screen.getByRole('main', { name: 's3' })

describe('page', () => {
  test('is the main landmark, named by its heading', () => {
    render(
      <Page id="shard" title="s3" where="Shards" ready crumbs={[{ href: '/shards', label: 'Shards' }]}>
        members
      </Page>,
    )
    expect(within(main()).getByRole('heading', { level: 1, name: 's3' })).toBeTruthy()
    const crumbs = screen.getByRole('navigation', { name: 'Breadcrumb' })
    expect(within(crumbs).getByRole('link', { name: 'Shards' }).getAttribute('href')).toBe('/shards')
    expect(document.title).toBe('s3 · Shards · Vacancy')
  })

  test('has no breadcrumb at the top level', () => {
    render(
      <Page id="shards" title="s3" ready crumbs={[]}>
        list
      </Page>,
    )
    expect(screen.queryByRole('navigation')).toBeNull()
    expect(document.title).toBe('s3 · Vacancy')
  })

  test('counts what needs attention in the window title', () => {
    render(
      <AttentionContext value={2}>
        <Page id="shard" title="s3" ready>
          members
        </Page>
      </AttentionContext>,
    )
    expect(document.title).toBe('(2) s3 · Vacancy')
  })

  test('is ready once its first data is rendered', () => {
    const page = (ready: boolean) => (
      <Page id="shard" title="s3" ready={ready}>
        members
      </Page>
    )
    const { rerender } = render(page(false))
    expect(main().dataset['ready']).toBe('false')
    rerender(page(true))
    expect(main().dataset['ready']).toBe('true')
  })
})
