import { redirect } from 'next/navigation'
import { routes } from '../../../lib/routes.ts'

export default function Page() {
  redirect(routes.dashboard('engine'))
}
