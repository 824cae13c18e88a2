// go-redis as applications use it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ctx  = context.Background()
	addr = "127.0.0.1:" + os.Getenv("REDIS_PORT")
)

func connect(protocol int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 20, Protocol: protocol, MaxRetries: 20, MinRetryBackoff: 20 * time.Millisecond})
}

func expect(what string, got, wanted any) error {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: %v, not %v", what, got, wanted)
	}
	return nil
}

func values(r *redis.Client) error {
	type user struct {
		Name string `redis:"name"`
		Age  int    `redis:"age"`
	}
	r.HSet(ctx, "user", user{"Ann", 7})
	var got user
	_, err := r.Get(ctx, "missing").Result()
	return errors.Join(
		r.HGetAll(ctx, "user").Scan(&got),
		expect("a hash", got, user{"Ann", 7}),
		expect("nothing", err, redis.Nil),
		r.ZAdd(ctx, "z", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: 2, Member: "b"}).Err(),
		expect("a range", r.ZRangeWithScores(ctx, "z", 0, -1).Val(), "[{1.5 a} {2 b}]"),
		expect("a set", r.SetArgs(ctx, "k", "v", redis.SetArgs{Mode: "NX", TTL: time.Minute}).Val(), "OK"),
	)
}

func poolOfGoroutines(r *redis.Client) error {
	r.Del(ctx, "hits")
	var all sync.WaitGroup
	for range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				r.Incr(ctx, "hits")
			}
		}()
	}
	all.Wait()
	return expect("hits", r.Get(ctx, "hits").Val(), 2500)
}

func pipelines(r *redis.Client) error {
	_, err := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range 10000 {
			pipe.Set(ctx, fmt.Sprint("p", i), i, 0)
		}
		return nil
	})
	got, other := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range 10000 {
			pipe.Get(ctx, fmt.Sprint("p", i))
		}
		return nil
	})
	for i, cmd := range got {
		if cmd.(*redis.StringCmd).Val() != fmt.Sprint(i) {
			return fmt.Errorf("p%d is %v", i, cmd)
		}
	}
	return errors.Join(err, other)
}

func transactions(r *redis.Client) error {
	r.Set(ctx, "stock", 5, 0)
	buy := func(meanwhile func()) error {
		return r.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, "stock").Int()
			if err != nil {
				return err
			}
			meanwhile()
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(ctx, "stock", left-1, 0)
				return nil
			})
			return err
		}, "stock")
	}
	return errors.Join(
		buy(func() {}),
		expect("a lost race", buy(func() { r.Set(ctx, "stock", 9, 0) }), redis.TxFailedErr),
		expect("the stock", r.Get(ctx, "stock").Val(), 9),
	)
}

func scripts(r *redis.Client) error {
	add := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
	r.Del(ctx, "n")
	r.ScriptFlush(ctx)
	return errors.Join(
		expect("loaded by its use", add.Run(ctx, r, []string{"n"}, 3).Val(), 3),
		expect("by its hash", add.EvalSha(ctx, r, []string{"n"}, 4).Val(), 7),
	)
}

func channels(r *redis.Client) error {
	sub := r.Subscribe(ctx, "news")
	defer sub.Close()
	if err := sub.PSubscribe(ctx, "new*"); err != nil {
		return err
	}
	for range 2 {
		if _, err := sub.Receive(ctx); err != nil {
			return err
		}
	}
	if err := expect("listeners", r.Publish(ctx, "news", "hello").Val(), 2); err != nil {
		return err
	}
	first, second := <-sub.Channel(), <-sub.Channel()
	return errors.Join(expect("a message", first.Payload+second.Payload, "hellohello"))
}

func blockingPops(r *redis.Client) error {
	popped := make(chan []string)
	go func() { popped <- r.BLPop(ctx, 10*time.Second, "q1", "q2").Val() }()
	for !strings.Contains(r.Info(ctx, "clients").Val(), "blocked_clients:1") {
		time.Sleep(5 * time.Millisecond)
	}
	r.RPush(ctx, "q2", "job")
	return expect("popped", <-popped, "[q2 job]")
}

func scans(r *redis.Client) error {
	seen := map[string]bool{}
	for it := r.Scan(ctx, 0, "p*", 500).Iterator(); it.Next(ctx); {
		seen[it.Val()] = true
	}
	return expect("keys", len(seen), 10000)
}

func streams(r *redis.Client) error {
	for i := range 100 {
		r.XAdd(ctx, &redis.XAddArgs{Stream: "s", Values: map[string]any{"n": i}})
	}
	r.XGroupCreate(ctx, "s", "g", "0")
	done := int64(0)
	for {
		got, err := r.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"s", ">"}, Count: 9, Block: 20 * time.Millisecond}).Result()
		if errors.Is(err, redis.Nil) {
			break
		} else if err != nil {
			return err
		}
		for _, message := range got[0].Messages {
			done += r.XAck(ctx, "s", "g", message.ID).Val()
		}
	}
	info := r.XInfoStreamFull(ctx, "s", 5).Val()
	return errors.Join(expect("done", done, 100), expect("its group", info.Groups[0].Name, "g"), expect("pending", info.Groups[0].PelCount, 0))
}

func reconnectsAfterAKill(r *redis.Client) error {
	sub := r.Subscribe(ctx, "after")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		return err
	}
	r.Set(ctx, "before", "kill", 0)
	if out, err := exec.Command(os.Getenv("RESTART_SERVER")).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if err := expect("the value", r.Get(ctx, "before").Val(), "kill"); err != nil {
		return err
	}
	for range 200 {
		r.Publish(ctx, "after", "again")
		select {
		case <-sub.Channel():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the subscription did not come back")
}

func main() {
	passed, failed := 0, 0
	for _, protocol := range []int{2, 3} {
		r := connect(protocol)
		r.FlushAll(ctx)
		checks := map[string]func(*redis.Client) error{
			"values": values, "pool": poolOfGoroutines, "pipelines and scans": func(r *redis.Client) error { return errors.Join(pipelines(r), scans(r)) },
			"transactions": transactions, "scripts": scripts, "channels": channels, "blocking pops": blockingPops, "streams": streams,
			"reconnect": reconnectsAfterAKill,
		}
		for name, check := range checks {
			if err := check(r); err != nil {
				failed++
				fmt.Printf("FAILED %s in RESP%d: %v\n", name, protocol, err)
			} else {
				passed++
				fmt.Printf("ok %s in RESP%d\n", name, protocol)
			}
		}
		r.Close()
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
