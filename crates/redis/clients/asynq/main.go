// A thousand jobs by asynq: priorities, delays, retries, unique jobs, and the server killed while they run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hibiken/asynq"
)

var at = asynq.RedisClientOpt{Addr: "127.0.0.1:" + os.Getenv("REDIS_PORT")}

// jobs that ran, by name and payload.
type jobs struct {
	mutex sync.Mutex
	ran   map[string]int
}

func (j *jobs) run(_ context.Context, task *asynq.Task) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	name := task.Type() + string(task.Payload())
	j.ran[name]++
	if task.Type() == "fails-twice" && j.ran[name] < 3 {
		return errors.New("again")
	}
	return nil
}

func (j *jobs) until(count int, kind string) error {
	for range 1200 {
		j.mutex.Lock()
		ran := 0
		for name := range j.ran {
			if len(name) > len(kind) && name[:len(kind)] == kind {
				ran++
			}
		}
		j.mutex.Unlock()
		if ran == count {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("not all of %s ran", kind)
}

func main() {
	client := asynq.NewClient(at)
	ran := &jobs{ran: map[string]int{}}
	server := asynq.NewServer(at, asynq.Config{
		Concurrency: 20, LogLevel: asynq.FatalLevel, Queues: map[string]int{"critical": 6, "default": 3},
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 100 * time.Millisecond },
		DelayedTaskCheckInterval: 100 * time.Millisecond,
	})
	if err := server.Start(asynq.HandlerFunc(ran.run)); err != nil {
		panic(err)
	}
	enqueue := func(kind string, n int, options ...asynq.Option) error {
		_, err := client.Enqueue(asynq.NewTask(kind, fmt.Appendf(nil, ":%d", n)), options...)
		return err
	}
	many := func(kind string, count int, options ...asynq.Option) (err error) {
		for n := range count {
			err = errors.Join(err, enqueue(kind, n, options...))
		}
		return err
	}
	checks := []struct {
		name string
		run  func() error
	}{
		{"a thousand jobs", func() error { return errors.Join(many("job", 1000), ran.until(1000, "job")) }},
		{"priorities and delays", func() error {
			return errors.Join(many("urgent", 50, asynq.Queue("critical")), enqueue("later", 1, asynq.ProcessIn(time.Second)),
				ran.until(50, "urgent"), ran.until(1, "later"))
		}},
		{"unique jobs", func() error {
			err := enqueue("once", 1, asynq.Unique(time.Minute), asynq.ProcessIn(time.Minute))
			if again := enqueue("once", 1, asynq.Unique(time.Minute)); !errors.Is(again, asynq.ErrDuplicateTask) {
				err = errors.Join(err, fmt.Errorf("not refused: %v", again))
			}
			return err
		}},
		{"retries", func() error {
			if err := enqueue("fails-twice", 1, asynq.MaxRetry(5)); err != nil {
				return err
			}
			for range 600 {
				ran.mutex.Lock()
				count := ran.ran["fails-twice:1"]
				ran.mutex.Unlock()
				if count == 3 {
					return nil
				}
				time.Sleep(50 * time.Millisecond)
			}
			return errors.New("not tried three times")
		}},
		{"a kill in between", func() error {
			if out, err := exec.Command(os.Getenv("RESTART_SERVER")).CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			for range 100 {
				if client.Ping() == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			return errors.Join(many("after", 200), ran.until(200, "after"))
		}},
		{"the inspector", func() error {
			info, err := asynq.NewInspector(at).GetQueueInfo("default")
			if err == nil && (info.Pending != 0 || info.Scheduled != 1) {
				err = fmt.Errorf("%+v", info)
			}
			return err
		}},
	}
	failed := 0
	for _, check := range checks {
		if err := check.run(); err != nil {
			failed++
			fmt.Println("FAILED", check.name, err)
		} else {
			fmt.Println("ok", check.name)
		}
	}
	server.Shutdown()
	fmt.Printf("%d passed, %d failed\n", len(checks)-failed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
