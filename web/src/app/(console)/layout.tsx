import type { ReactNode } from 'react'
import { Shell } from '../../features/shell/shell.tsx'
import { firstData } from '../../lib/first-data.ts'

export default async function ConsoleLayout({ children }: { readonly children: ReactNode }) {
  return <Shell first={await firstData()}>{children}</Shell>
}
