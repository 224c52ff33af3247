import type { Metadata, Viewport } from 'next'
import { cookies } from 'next/headers'
import type { ReactNode } from 'react'
import { APPEARANCE_COOKIE, parseAppearance } from '../lib/appearance.ts'
import './globals.css'

export const metadata: Metadata = {
  applicationName: 'Vacancy',
  robots: { index: false, follow: false },
  referrer: 'no-referrer',
  formatDetection: { telephone: false, address: false, email: false, date: false },
}

export const viewport: Viewport = {
  width: 'device-width',
  initialScale: 1,
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#f7f6f2' },
    { media: '(prefers-color-scheme: dark)', color: '#101218' },
  ],
}

const END = 'all-there'

/** The frame of every page. Theme and density come from a cookie, so that the first paint has them without a script. */
export default async function RootLayout({ children }: { readonly children: ReactNode }) {
  const look = parseAppearance((await cookies()).get(APPEARANCE_COOKIE)?.value)
  return (
    <html lang="en" data-theme={look.theme} data-density={look.density}>
      <body>
        {/* Drawn once it is all there: in pieces, each lays out what came before it again, and the last is late. */}
        <link rel="expect" href={`#${END}`} blocking="render" />
        {children}
        <i id={END} hidden />
      </body>
    </html>
  )
}
