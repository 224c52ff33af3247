import { redirect } from 'next/navigation'
import { PAGES } from '../../../lib/pages.ts'

export default function Page() {
  redirect(PAGES.dashboards.redirectsTo)
}
