import { notFound } from 'next/navigation'

/** Every address that is no page: answered with 404 inside of the shell. */
export default function Page() {
  notFound()
}
