'use client'
import { Component, type ErrorInfo, type ReactNode } from 'react'

type BoundaryProps = {
  /** For the log of the browser. */
  readonly name: string
  /** Shown instead of what failed. */
  readonly fallback: (error: unknown, retry: () => void) => ReactNode
  readonly onError?: (error: unknown) => void
  readonly children: ReactNode
}

/** A part that fails leaves the rest of the page working. */
export class Boundary extends Component<BoundaryProps, { error: unknown }> {
  override state: { error: unknown } = { error: undefined }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override componentDidCatch(error: unknown, info: ErrorInfo) {
    console.error(`${this.props.name} failed`, error, info.componentStack)
    this.props.onError?.(error)
  }

  override render() {
    const { error } = this.state
    const retry = () => this.setState({ error: undefined })
    return error === undefined ? this.props.children : this.props.fallback(error, retry)
  }
}
