// Oracle answers scheduling cases with kube-scheduler's own code.
//
// It reads one case a line from standard input (JSON) and writes one answer a line to standard output, in the order of
// the cases. The format of both is described in README.md.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// queued is one case on its way: its line, and where its answer goes.
type queued struct {
	line   []byte
	answer chan []byte
}

func main() {
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "cases that are answered at the same time")
	gates := flag.String("gates", "", "feature gates for every case, such as A=true,B=false")
	flag.BoolVar(&reverseOrder, "reverse", false, "list objects in the reverse order, to find answers that depend on it")
	release := flag.Bool("release", false, "print the release of Kubernetes and end")
	profile := flag.String("profile", "", "write a CPU profile to this file")
	flag.Parse()
	if *release {
		fmt.Println(version.Get().GitVersion)
		return
	}
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			fail(err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			fail(err)
		}
		defer pprof.StopCPUProfile()
	}
	klog.SetLogger(klog.Logger{})
	debug.SetGCPercent(400)
	metrics.Register()
	if err := setProcessGates(*gates); err != nil {
		fail(err)
	}
	if err := answerAll(os.Stdin, os.Stdout, *workers); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "oracle:", err)
	os.Exit(1)
}

// answerAll answers the cases of input in their order, several at a time.
func answerAll(input io.Reader, output io.Writer, workers int) error {
	todo := make(chan queued)
	inOrder := make(chan queued, 4*workers)
	for range workers {
		go func() {
			for one := range todo {
				one.answer <- answerLine(one.line)
			}
		}()
	}
	var readError error
	go func() {
		defer close(inOrder)
		defer close(todo)
		reader := bufio.NewReaderSize(input, 1<<20)
		for {
			line, err := reader.ReadBytes('\n')
			if len(strings.TrimSpace(string(line))) > 0 {
				one := queued{line, make(chan []byte, 1)}
				inOrder <- one
				todo <- one
			}
			if err != nil {
				if err != io.EOF {
					readError = err
				}
				return
			}
		}
	}()
	for one := range inOrder {
		if _, err := output.Write(append(<-one.answer, '\n')); err != nil {
			return err
		}
	}
	return readError
}

// answerLine answers one case. Whatever goes wrong becomes an answer with "error".
func answerLine(line []byte) (answer []byte) {
	var result caseAnswer
	defer func() {
		if problem := recover(); problem != nil {
			result.Expect, result.Error = nil, fmt.Sprintf("kube-scheduler panics: %v\n%s", problem, debug.Stack())
			answer = encode(result)
		}
	}()
	one, err := readCase(line)
	result.Name = one.Name
	if err == nil {
		result.Expect, err = one.answer()
	}
	if err != nil {
		result.Expect, result.Error = nil, err.Error()
	}
	return encode(result)
}

// caseAnswer is one line of the output: the expectation, or why there is none.
type caseAnswer struct {
	Name   string       `json:"name"`
	Expect *expectation `json:"expect,omitempty"`
	Error  string       `json:"error,omitempty"`
}

// encode writes a value as JSON without escaping "<", ">" and "&" in messages.
func encode(value any) []byte {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return []byte(fmt.Sprintf(`{"error": %q}`, err.Error()))
	}
	return []byte(strings.TrimSuffix(text.String(), "\n"))
}
