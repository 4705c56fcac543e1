//go:build !kube135

package main

import "k8s.io/client-go/tools/cache"

// done is a channel that is closed.
var done = func() chan struct{} {
	channel := make(chan struct{})
	close(channel)
	return channel
}()

// HasSyncedChecker returns a checker that is done; client-go has such checkers since 0.36.
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }

// Name says what a checker waits for.
func (synced) Name() string { return "oracle" }

// Done returns a closed channel.
func (synced) Done() <-chan struct{} { return done }
