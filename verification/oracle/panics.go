package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// panics notes the panics in goroutines of Kubernetes during one case. They would end kube-scheduler; here they make
// the case's answer an error.
type panics struct {
	lock  sync.Mutex
	first error
}

type panicsKey struct{}

func init() {
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(context.Context, any){notePanic}
}

func notePanic(ctx context.Context, problem any) {
	stack := debug.Stack()
	noted, ok := ctx.Value(panicsKey{}).(*panics)
	if !ok {
		fail(fmt.Errorf("panic outside a case: %v\n%s", problem, stack))
	}
	noted.lock.Lock()
	defer noted.lock.Unlock()
	if noted.first == nil {
		noted.first = fmt.Errorf("kube-scheduler panics: %v\n%s", problem, stack)
	}
}

// withPanics returns a context in which panics are noted, and a function that returns the first of them.
func withPanics(ctx context.Context) (context.Context, func() error) {
	noted := &panics{}
	return context.WithValue(ctx, panicsKey{}, noted), func() error {
		noted.lock.Lock()
		defer noted.lock.Unlock()
		return noted.first
	}
}
