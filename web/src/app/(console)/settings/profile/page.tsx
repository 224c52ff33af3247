import { ProfilePage } from '../../../../features/settings/profile-page.tsx'

export default function Page() {
  return <ProfilePage />
}
