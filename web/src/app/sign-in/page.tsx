import { SignInPage } from '../../features/session/sign-in-page.tsx'

export default function Page() {
  return <SignInPage />
}
