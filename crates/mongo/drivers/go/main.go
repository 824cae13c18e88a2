// MongoDB's driver for Go as applications use it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

var (
	ctx    = context.Background()
	client *mongo.Client
	db     *mongo.Database
)

func ok(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	ok(err)
	return value
}

func same(got, wanted any) {
	if !reflect.DeepEqual(got, wanted) {
		panic(fmt.Sprintf("%#v, not %#v", got, wanted))
	}
}

func code(err error) int {
	var server mongo.ServerError
	if !errors.As(err, &server) {
		panic(fmt.Sprint("not refused by the server: ", err))
	}
	return server.ErrorCodes()[0]
}

func all(cursor *mongo.Cursor, err error) []bson.M {
	ok(err)
	found := []bson.M{}
	ok(cursor.All(ctx, &found))
	return found
}

func singleWrites() {
	c := db.Collection("single")
	id := must(c.InsertOne(ctx, bson.M{"a": int32(1), "b": bson.M{"c": bson.A{"x"}}})).InsertedID
	var found bson.M
	ok(c.FindOne(ctx, bson.M{"_id": id}).Decode(&found))
	same(found["a"], int32(1))
	updated := must(c.UpdateOne(ctx, bson.M{"a": 1}, bson.M{"$inc": bson.M{"a": 1}, "$push": bson.M{"b.c": "y"}}))
	same([]int64{updated.MatchedCount, updated.ModifiedCount}, []int64{1, 1})
	upserted := must(c.UpdateOne(ctx, bson.M{"_id": "new"}, bson.M{"$set": bson.M{"a": 5}}, options.UpdateOne().SetUpsert(true)))
	same(upserted.UpsertedID, "new")
	same(must(c.ReplaceOne(ctx, bson.M{"_id": "new"}, bson.M{"z": 1})).ModifiedCount, int64(1))
	var projected bson.M
	ok(c.FindOne(ctx, bson.M{"b.c": "y"}, options.FindOne().SetProjection(bson.M{"_id": 0, "a": 1})).Decode(&projected))
	same(projected, bson.M{"a": int32(2)})
	same(must(c.DeleteMany(ctx, bson.M{})).DeletedCount, int64(2))
	same(must(c.CountDocuments(ctx, bson.M{})), int64(0))
}

func cursors() {
	c := db.Collection("many")
	documents := make([]bson.M, 10000)
	for n := range documents {
		documents[n] = bson.M{"_id": n, "n": n, "text": strings.Repeat("x", n%100)}
	}
	same(len(must(c.InsertMany(ctx, documents)).InsertedIDs), 10000)
	cursor := must(c.Find(ctx, bson.M{"n": bson.M{"$gte": 5000}}, options.Find().SetBatchSize(333)))
	total := 0
	for cursor.Next(ctx) {
		var found struct{ N int }
		ok(cursor.Decode(&found))
		total += found.N
	}
	ok(cursor.Err())
	same(total, (5000+9999)*5000/2)
	top := all(c.Find(ctx, bson.M{}, options.Find().SetSort(bson.M{"n": -1}).SetSkip(10).SetLimit(2)))
	same([]any{top[0]["_id"], top[1]["_id"]}, []any{int32(9989), int32(9988)})
	cursor = must(c.Find(ctx, bson.M{}, options.Find().SetBatchSize(2)))
	same(cursor.Next(ctx), true)
	ok(cursor.Close(ctx))
	var values []int
	ok(c.Distinct(ctx, "n", bson.M{"n": bson.M{"$lt": 3}}).Decode(&values))
	sort.Ints(values)
	same(values, []int{0, 1, 2})
	same(must(c.EstimatedDocumentCount(ctx)), int64(10000))
}

func bulks() {
	done := must(db.Collection("bulk").BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 2}),
		mongo.NewUpdateManyModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"x": 1}}),
		mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": 3}).SetReplacement(bson.M{"y": 1}).SetUpsert(true),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 1}),
	}))
	same([]int64{done.InsertedCount, done.ModifiedCount, done.UpsertedCount, done.DeletedCount}, []int64{2, 2, 1, 1})
}

func duplicates() {
	c := db.Collection("dups")
	must(c.InsertOne(ctx, bson.M{"_id": 1}))
	_, err := c.InsertOne(ctx, bson.M{"_id": 1})
	same(mongo.IsDuplicateKeyError(err), true)
	_, err = c.InsertMany(ctx, []bson.M{{"_id": 2}, {"_id": 1}, {"_id": 3}}, options.InsertMany().SetOrdered(false))
	var many mongo.BulkWriteException
	same(errors.As(err, &many), true)
	same(many.WriteErrors[0].Index, 1)
	same(must(c.CountDocuments(ctx, bson.M{})), int64(3))
}

func indexes() {
	c := db.Collection("indexed")
	documents := make([]bson.M, 100)
	for n := range documents {
		documents[n] = bson.M{"mail": fmt.Sprint("m", n), "a": n % 10, "b": n}
	}
	must(c.InsertMany(ctx, documents))
	name := must(c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"mail": 1}, Options: options.Index().SetUnique(true)}))
	same(name, "mail_1")
	must(c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}, {Key: "b", Value: -1}}}))
	names := []string{}
	for _, each := range must(c.Indexes().ListSpecifications(ctx)) {
		names = append(names, each.Name)
	}
	sort.Strings(names)
	same(names, []string{"_id_", "a_1_b_-1", "mail_1"})
	_, err := c.InsertOne(ctx, bson.M{"mail": "m5"})
	same(mongo.IsDuplicateKeyError(err), true)
	top := all(c.Find(ctx, bson.M{"a": 3}, options.Find().SetSort(bson.M{"b": -1}).SetLimit(2).SetHint("a_1_b_-1")))
	same([]any{top[0]["b"], top[1]["b"]}, []any{int32(93), int32(83)})
	ok(c.Indexes().DropOne(ctx, "mail_1"))
	must(c.InsertOne(ctx, bson.M{"mail": "m5"}))
}

func pipelines() {
	c := db.Collection("sales")
	must(c.InsertMany(ctx, []bson.M{{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}, {"k": "c", "n": 4}}))
	groups := all(c.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.M{"n": bson.M{"$lt": 4}}}},
		{{Key: "$group", Value: bson.M{"_id": "$k", "total": bson.M{"$sum": "$n"}}}},
		{{Key: "$sort", Value: bson.M{"_id": 1}}},
	}))
	same(groups, []bson.M{{"_id": "a", "total": int32(4)}, {"_id": "b", "total": int32(2)}})
}

func findAndModify() {
	c := db.Collection("counters")
	after := options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)
	for n := int32(1); n < 3; n++ {
		var found bson.M
		ok(c.FindOneAndUpdate(ctx, bson.M{"_id": "seq"}, bson.M{"$inc": bson.M{"n": 1}}, after).Decode(&found))
		same(found["n"], n)
	}
	var gone bson.M
	ok(c.FindOneAndDelete(ctx, bson.M{"_id": "seq"}).Decode(&gone))
	same(gone["n"], int32(2))
	same(c.FindOneAndReplace(ctx, bson.M{"_id": "none"}, bson.M{"a": 1}).Err(), mongo.ErrNoDocuments)
}

func types() {
	c := db.Collection("types")
	decimal := must(bson.ParseDecimal128("1.2345678901234567890123456789"))
	document := bson.D{
		{Key: "_id", Value: bson.NewObjectID()}, {Key: "string", Value: "häß\x00lich"}, {Key: "double", Value: 1.5},
		{Key: "int", Value: int32(7)}, {Key: "long", Value: int64(9007199254740993)}, {Key: "decimal", Value: decimal},
		{Key: "date", Value: bson.DateTime(1700000000123)}, {Key: "binary", Value: bson.Binary{Subtype: 128, Data: []byte{1, 2, 3}}},
		{Key: "regex", Value: bson.Regex{Pattern: "^a", Options: "i"}}, {Key: "stamp", Value: bson.Timestamp{T: 5, I: 6}},
		{Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}}, {Key: "none", Value: nil}, {Key: "yes", Value: true},
		{Key: "code", Value: bson.JavaScript("f()")}, {Key: "symbol", Value: bson.Symbol("s")},
		{Key: "deep", Value: bson.A{bson.A{}, bson.D{}, bson.A{int32(1), nil}}},
	}
	must(c.InsertOne(ctx, document))
	var back bson.D
	ok(c.FindOne(ctx, bson.D{{Key: "_id", Value: document[0].Value}}).Decode(&back))
	same(back, document)
	same(must(c.CountDocuments(ctx, bson.M{"decimal": bson.M{"$type": "decimal"}})), int64(1))
}

func workers() {
	c := db.Collection("counter")
	must(c.InsertOne(ctx, bson.M{"_id": 1, "n": 0}))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				must(c.UpdateOne(ctx, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}}))
			}
		})
	}
	group.Wait()
	same(must(c.CountDocuments(ctx, bson.M{"n": 1600})), int64(1))
}

func compressed() {
	for _, compressor := range []string{"zlib", "snappy", "zstd"} {
		other := must(mongo.Connect(options.Client().ApplyURI(os.Getenv("MONGO_URI")).SetCompressors([]string{compressor})))
		c := other.Database("go").Collection("compressed-" + compressor)
		documents := make([]bson.M, 1000)
		for n := range documents {
			documents[n] = bson.M{"n": n, "text": strings.Repeat("again and again ", 20)}
		}
		must(c.InsertMany(ctx, documents))
		same(len(all(c.Find(ctx, bson.M{}))), 1000)
		ok(other.Disconnect(ctx))
	}
}

func sessions() {
	c := db.Collection("sessions", options.Collection().SetWriteConcern(writeconcern.Majority()))
	ok(client.UseSession(ctx, func(ctx context.Context) error {
		must(c.InsertOne(ctx, bson.M{"a": 1}))
		same(must(c.CountDocuments(ctx, bson.M{})), int64(1))
		return nil
	}))
}

func gridfs() {
	bucket := db.GridFSBucket()
	data := bytes.Repeat([]byte("drumlin "), 87500)
	id := must(bucket.UploadFromStream(ctx, "a.bin", bytes.NewReader(data)))
	var back bytes.Buffer
	same(must(bucket.DownloadToStream(ctx, id, &back)), int64(700000))
	same(bytes.Equal(back.Bytes(), data), true)
	ok(bucket.Delete(ctx, id))
}

func refusals() {
	c := db.Collection("refused")
	must(c.InsertOne(ctx, bson.M{"a": 1}))
	_, err := c.Find(ctx, bson.M{"$where": "this.a"})
	same(strings.Contains(err.Error(), "$where"), true)
	_, err = c.Aggregate(ctx, mongo.Pipeline{{{Key: "$geoNear", Value: bson.M{}}}})
	same(strings.Contains(err.Error(), "$geoNear"), true)
	_, err = c.Watch(ctx, mongo.Pipeline{})
	same(strings.Contains(strings.ToLower(err.Error()), "changestream"), true)
	session := must(client.StartSession())
	ok(session.StartTransaction())
	_, err = c.InsertOne(mongo.NewSessionContext(ctx, session), bson.M{"a": 2})
	same(code(err), 20)
	session.EndSession(ctx)
	same(code(db.RunCommand(ctx, bson.M{"nonsense": 1}).Err()), 59)
	same(must(c.CountDocuments(ctx, bson.M{})), int64(1))
}

func catalog() {
	ok(db.CreateCollection(ctx, "made"))
	same(must(db.ListCollectionNames(ctx, bson.M{"name": "made"})), []string{"made"})
	ok(db.Collection("made").Drop(ctx))
	same(must(db.ListCollectionNames(ctx, bson.M{"name": "made"})), []string{})
	same(must(client.ListDatabaseNames(ctx, bson.M{"name": "go"})), []string{"go"})
}

func aKilledServer() {
	c := db.Collection("killed")
	acknowledged := []int32{}
	var stop atomic.Bool
	done := make(chan bool)
	go func() {
		for n := int32(0); !stop.Load(); n++ {
			if _, err := c.InsertOne(ctx, bson.M{"_id": n}); err == nil {
				acknowledged = append(acknowledged, n)
			}
		}
		done <- true
	}()
	time.Sleep(300 * time.Millisecond)
	ok(exec.Command(os.Getenv("RESTART_SERVER")).Run())
	time.Sleep(300 * time.Millisecond)
	stop.Store(true)
	<-done
	found := map[any]bool{}
	for _, each := range all(c.Find(ctx, bson.M{})) {
		found[each["_id"]] = true
	}
	same(len(acknowledged) > 10, true)
	for _, n := range acknowledged {
		same(found[n], true)
	}
}

func main() {
	client = must(mongo.Connect(options.Client().ApplyURI(os.Getenv("MONGO_URI"))))
	db = client.Database("go")
	passed, failed := 0, 0
	check := func(name string, body func()) {
		defer func() {
			if cause := recover(); cause != nil {
				failed++
				fmt.Println("FAILED", name, cause)
			} else {
				passed++
				fmt.Println("ok", name)
			}
		}()
		body()
	}
	check("single writes", singleWrites)
	check("cursors", cursors)
	check("bulks", bulks)
	check("duplicates", duplicates)
	check("indexes", indexes)
	check("pipelines", pipelines)
	check("find and modify", findAndModify)
	check("types", types)
	check("workers", workers)
	check("compressed", compressed)
	check("sessions", sessions)
	check("gridfs", gridfs)
	check("refusals", refusals)
	check("catalog", catalog)
	check("a killed server", aKilledServer)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
