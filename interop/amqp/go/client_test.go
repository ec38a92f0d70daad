// Package amqp runs go-amqp against any AMQP 1.0 broker, given by AMQP_URL.
package amqp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// wait is longer than anything takes that comes at all.
const wait = 15 * time.Second

// marked is how markers begin, and nothing else.
const marked = "marker "

var numbers atomic.Uint64

// scenario is a connection and a session, and a queue that nobody else uses.
type scenario struct {
	*testing.T
	context context.Context
	conn    *amqp.Conn
	session *amqp.Session
	queue   string
}

func begin(t *testing.T) scenario {
	return beginWith(t, nil)
}

func beginWith(t *testing.T, options *amqp.ConnOptions) scenario {
	t.Helper()
	limited, cancel := context.WithTimeout(context.Background(), 4*wait)
	t.Cleanup(cancel)
	s := scenario{T: t, context: limited}
	conn, err := amqp.Dial(limited, os.Getenv("AMQP_URL"), options)
	s.ok(err)
	t.Cleanup(func() { conn.Close() })
	s.conn = conn
	s.session, err = conn.NewSession(limited, nil)
	s.ok(err)
	s.queue = fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), numbers.Add(1))
	return s
}

// another is one more connection, to the same queue.
func (s scenario) another() scenario {
	s.Helper()
	other := begin(s.T)
	other.queue = s.queue
	return other
}

// named is a connection of a client with a name, and its socket.
func (s scenario) named(name string) (*amqp.Conn, net.Conn, *amqp.Session) {
	s.Helper()
	address, err := url.Parse(os.Getenv("AMQP_URL"))
	s.ok(err)
	socket, err := net.Dial("tcp", address.Host)
	s.ok(err)
	options := &amqp.ConnOptions{ContainerID: name, SASLType: amqp.SASLTypeAnonymous()}
	conn, err := amqp.NewConn(s.context, socket, options)
	s.ok(err)
	s.Cleanup(func() { conn.Close() })
	session, err := conn.NewSession(s.context, nil)
	s.ok(err)
	return conn, socket, session
}

func (s scenario) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s scenario) equal(want, got any) {
	s.Helper()
	if !reflect.DeepEqual(want, got) {
		s.Fatalf("want %v, got %v", want, got)
	}
}

func (s scenario) sender(options *amqp.SenderOptions) *amqp.Sender {
	s.Helper()
	sender, err := s.session.NewSender(s.context, s.queue, options)
	s.ok(err)
	return sender
}

// receiver is a receiver whose credit only the test gives, unless its options say otherwise.
func (s scenario) receiver(options amqp.ReceiverOptions) *amqp.Receiver {
	s.Helper()
	if options.Credit == 0 {
		options.Credit = -1
	}
	receiver, err := s.session.NewReceiver(s.context, s.queue, &options)
	s.ok(err)
	return receiver
}

func durable(body string) *amqp.Message {
	message := amqp.NewMessage([]byte(body))
	message.Header = &amqp.MessageHeader{Durable: true, Priority: 4}
	return message
}

// send stores durable messages, each confirmed.
func (s scenario) send(bodies ...string) {
	s.Helper()
	sender := s.sender(nil)
	for _, body := range bodies {
		s.ok(sender.Send(s.context, durable(body), nil))
	}
	s.ok(sender.Close(s.context))
}

// next is a message that has to come.
func (s scenario) next(receiver *amqp.Receiver) *amqp.Message {
	s.Helper()
	limited, cancel := context.WithTimeout(s.context, wait)
	defer cancel()
	message, err := receiver.Receive(limited, nil)
	s.ok(err)
	return message
}

// take is the next count messages, asked for one by one.
func (s scenario) take(receiver *amqp.Receiver, count int) []*amqp.Message {
	s.Helper()
	var messages []*amqp.Message
	for range count {
		s.ok(receiver.IssueCredit(1))
		messages = append(messages, s.next(receiver))
	}
	return messages
}

// all is all that is there: what comes before a marker that comes last by its priority. Every
// selector of these tests chooses markers.
func (s scenario) all(receiver *amqp.Receiver) []*amqp.Message {
	s.Helper()
	marker := durable(marked + fmt.Sprint(numbers.Add(1)))
	marker.Header.Priority = 0
	marker.ApplicationProperties = map[string]any{"colour": "red"}
	other := s.another()
	s.ok(other.sender(nil).Send(s.context, marker, nil))
	var messages []*amqp.Message
	for {
		message := s.take(receiver, 1)[0]
		if bytes.Equal(marker.GetData(), message.GetData()) {
			s.ok(receiver.AcceptMessage(s.context, message))
			return messages
		}
		messages = append(messages, message)
	}
}

// left takes all that is in the queue.
func (s scenario) left() []string {
	s.Helper()
	other := s.another()
	receiver := other.receiver(amqp.ReceiverOptions{})
	found := other.all(receiver)
	for _, message := range found {
		s.ok(receiver.AcceptMessage(s.context, message))
	}
	s.ok(other.conn.Close())
	return bodies(found)
}

// bodies leaves out markers, which a browser leaves behind.
func bodies(messages []*amqp.Message) []string {
	found := []string{}
	for _, message := range messages {
		if body := string(message.GetData()); !strings.HasPrefix(body, marked) {
			found = append(found, body)
		}
	}
	return found
}

// lacks skips a test that asks for what the broker is said to lack, in AMQP_LACKS.
func (s scenario) lacks(feature string) {
	s.Helper()
	if slices.Contains(strings.Split(os.Getenv("AMQP_LACKS"), ","), feature) {
		s.Skip("the broker lacks " + feature)
	}
}

func numbered(count int) []string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

func TestSendAndReceive(t *testing.T) {
	s := begin(t)
	s.send("one", "two")
	receiver := s.receiver(amqp.ReceiverOptions{Credit: 10})
	for _, body := range []string{"one", "two"} {
		message := s.next(receiver)
		s.equal(body, string(message.GetData()))
		s.ok(receiver.AcceptMessage(s.context, message))
	}
	s.ok(receiver.Close(s.context))
	s.equal([]string{}, s.left())
}

func TestSettleModesOfSenders(t *testing.T) {
	for _, mode := range []amqp.SenderSettleMode{
		amqp.SenderSettleModeUnsettled, amqp.SenderSettleModeSettled, amqp.SenderSettleModeMixed,
	} {
		s := begin(t)
		sender := s.sender(&amqp.SenderOptions{SettlementMode: mode.Ptr()})
		for _, body := range numbered(20) {
			settled := mode == amqp.SenderSettleModeSettled
			s.ok(sender.Send(s.context, durable(body), &amqp.SendOptions{Settled: settled}))
		}
		s.ok(sender.Close(s.context))
		s.equal(numbered(20), s.left())
	}
}

func TestSettledDeliveriesAreGoneAtOnce(t *testing.T) {
	s := begin(t)
	s.send("one", "two")
	mode := amqp.SenderSettleModeSettled
	receiver := s.receiver(amqp.ReceiverOptions{RequestedSenderSettleMode: mode.Ptr()})
	s.ok(receiver.IssueCredit(1))
	s.equal("one", string(s.next(receiver).GetData()))
	s.ok(s.conn.Close())
	s.equal([]string{"two"}, s.left())
}

func TestManySendersAtOnce(t *testing.T) {
	s := begin(t)
	done := make(chan error, 16)
	for range cap(done) {
		sender := s.sender(nil)
		go func() {
			var err error
			for i := 0; i < 50 && err == nil; i++ {
				err = sender.Send(s.context, durable("x"), nil)
			}
			done <- err
		}()
	}
	for range cap(done) {
		s.ok(<-done)
	}
	s.equal(800, len(s.left()))
}

func TestCreditIsNeverExceeded(t *testing.T) {
	s := begin(t)
	s.send(numbered(10)...)
	receiver := s.receiver(amqp.ReceiverOptions{})
	other := s.receiver(amqp.ReceiverOptions{})
	s.ok(receiver.IssueCredit(3))
	s.equal("0", string(s.next(receiver).GetData()))
	s.equal("1", string(s.next(receiver).GetData()))
	s.equal("2", string(s.next(receiver).GetData()))
	// The other's messages follow on the same session: ours would have come before.
	s.equal([]string{"3", "4"}, bodies(s.take(other, 2)))
	if receiver.Prefetched() != nil {
		s.Fatal("a message came without credit")
	}
	s.equal([]string{"5", "6"}, bodies(s.take(receiver, 2)))
}

// This client drains with a credit of zero, which takes all back, and waits for the answer.
func TestDrainTakesTheCreditBack(t *testing.T) {
	s := begin(t)
	s.lacks("DRAIN_WITHOUT_CREDIT")
	s.send("one")
	receiver := s.receiver(amqp.ReceiverOptions{})
	s.ok(receiver.IssueCredit(10))
	s.equal("one", string(s.next(receiver).GetData()))
	s.ok(receiver.DrainCredit(s.context, nil))
	s.send("two")
	s.equal([]string{"two"}, s.left())
	if receiver.Prefetched() != nil {
		s.Fatal("a message came without credit")
	}
	s.send("three")
	s.equal([]string{"three"}, bodies(s.take(receiver, 1)))
}

func TestReleasedComesBackUncounted(t *testing.T) {
	s := begin(t)
	s.send("one")
	receiver := s.receiver(amqp.ReceiverOptions{})
	for range 3 {
		s.ok(receiver.IssueCredit(1))
		message := s.next(receiver)
		s.equal(uint32(0), count(message))
		s.ok(receiver.ReleaseMessage(s.context, message))
	}
}

func TestModifiedComesBackCounted(t *testing.T) {
	s := begin(t)
	s.send("one")
	receiver := s.receiver(amqp.ReceiverOptions{})
	for attempt := range uint32(4) {
		s.ok(receiver.IssueCredit(1))
		message := s.next(receiver)
		s.equal(attempt, count(message))
		failed := &amqp.ModifyMessageOptions{DeliveryFailed: true}
		s.ok(receiver.ModifyMessage(s.context, message, failed))
	}
}

func count(message *amqp.Message) uint32 {
	if message.Header == nil {
		return 0
	}
	return message.Header.DeliveryCount
}

func TestUndeliverableHereDoesNotReturn(t *testing.T) {
	s := begin(t)
	s.send("poison", "good")
	receiver := s.receiver(amqp.ReceiverOptions{})
	s.ok(receiver.IssueCredit(1))
	elsewhere := &amqp.ModifyMessageOptions{DeliveryFailed: true, UndeliverableHere: true}
	s.ok(receiver.ModifyMessage(s.context, s.next(receiver), elsewhere))
	s.equal([]string{"good"}, bodies(s.all(receiver)))
}

func TestRejectedGoesToTheDeadLetters(t *testing.T) {
	s := begin(t)
	message := durable("poison")
	message.Properties = &amqp.MessageProperties{CorrelationID: s.queue}
	s.ok(s.sender(nil).Send(s.context, message, nil))
	receiver := s.receiver(amqp.ReceiverOptions{})
	s.ok(receiver.IssueCredit(1))
	reason := &amqp.Error{Condition: "my:reason", Description: "it is poison"}
	s.ok(receiver.RejectMessage(s.context, s.next(receiver), reason))
	chosen := amqp.NewSelectorFilter("JMSCorrelationID = '" + s.queue + "'")
	dead, err := s.session.NewReceiver(s.context, "DLQ",
		&amqp.ReceiverOptions{Filters: []amqp.LinkFilter{chosen}})
	s.ok(err)
	found := s.next(dead)
	s.equal("poison", string(found.GetData()))
	s.ok(dead.AcceptMessage(s.context, found))
	s.equal(0, len(s.all(receiver)))
}

func TestUnsettledComesBackWithTheLink(t *testing.T) {
	s := begin(t)
	s.send("one", "two")
	receiver := s.receiver(amqp.ReceiverOptions{})
	s.take(receiver, 2)
	s.ok(receiver.Close(s.context))
	s.equal([]string{"one", "two"}, s.left())
}

func TestUnsettledComesBackWithTheSession(t *testing.T) {
	s := begin(t)
	s.send("one", "two")
	s.take(s.receiver(amqp.ReceiverOptions{}), 2)
	s.ok(s.session.Close(s.context))
	s.equal([]string{"one", "two"}, s.left())
}

func TestUnsettledComesBackWithTheConnection(t *testing.T) {
	s := begin(t)
	s.send("one", "two")
	s.take(s.receiver(amqp.ReceiverOptions{}), 2)
	s.ok(s.conn.Close())
	s.equal([]string{"one", "two"}, s.left())
}

func TestDispositionsInAnyOrder(t *testing.T) {
	s := begin(t)
	s.send(numbered(20)...)
	receiver := s.receiver(amqp.ReceiverOptions{})
	messages := s.take(receiver, 20)
	for i := 18; i >= 0; i -= 2 {
		s.ok(receiver.AcceptMessage(s.context, messages[i]))
	}
	s.ok(s.conn.Close())
	want := []string{}
	for i := 1; i < 20; i += 2 {
		want = append(want, fmt.Sprint(i))
	}
	s.equal(want, s.left())
}

func TestBothEndsSettle(t *testing.T) {
	s := begin(t)
	s.send("one")
	mode := amqp.ReceiverSettleModeSecond
	receiver, err := s.session.NewReceiver(s.context, s.queue,
		&amqp.ReceiverOptions{SettlementMode: mode.Ptr()})
	if err != nil {
		// A broker may say that it settles first; then the client ends the link.
		s.Log("settles first only:", err)
		s.equal([]string{"one"}, s.left())
		return
	}
	s.ok(receiver.AcceptMessage(s.context, s.next(receiver)))
	s.ok(receiver.Close(s.context))
	s.equal([]string{}, s.left())
}

func TestSelector(t *testing.T) {
	s := begin(t)
	sender := s.sender(nil)
	for i, colour := range []string{"red", "blue", "red"} {
		message := durable(fmt.Sprint(i))
		message.ApplicationProperties = map[string]any{"colour": colour}
		s.ok(sender.Send(s.context, message, nil))
	}
	chosen := []amqp.LinkFilter{amqp.NewSelectorFilter("colour = 'red'")}
	receiver := s.receiver(amqp.ReceiverOptions{Filters: chosen})
	messages := s.all(receiver)
	s.equal([]string{"0", "2"}, bodies(messages))
	for _, message := range messages {
		s.ok(receiver.AcceptMessage(s.context, message))
	}
	s.ok(receiver.Close(s.context))
	s.equal([]string{"1"}, s.left())
}

func TestInvalidSelector(t *testing.T) {
	s := begin(t)
	chosen := []amqp.LinkFilter{amqp.NewSelectorFilter("colour = ")}
	options := amqp.ReceiverOptions{Filters: chosen}
	receiver, err := s.session.NewReceiver(s.context, s.queue, &options)
	if err == nil {
		_, err = receiver.Receive(s.context, nil)
	}
	var refused *amqp.Error
	var link *amqp.LinkError
	if errors.As(err, &link) {
		refused = link.RemoteErr
	} else if !errors.As(err, &refused) {
		s.Fatal(err)
	}
	s.equal(amqp.ErrCondInvalidField, refused.Condition)
}

func TestBrowsing(t *testing.T) {
	s := begin(t)
	s.send(numbered(30)...)
	for range 2 {
		receiver := s.receiver(amqp.ReceiverOptions{
			SourceDistributionMode: amqp.SourceDistributionModeCopy,
		})
		s.equal(numbered(30), bodies(s.all(receiver)))
		s.ok(receiver.Close(s.context))
	}
	s.equal(numbered(30), s.left())
}

func TestPriorities(t *testing.T) {
	s := begin(t)
	sender := s.sender(nil)
	for _, priority := range []uint8{1, 9, 5} {
		message := durable(fmt.Sprint(priority))
		message.Header.Priority = priority
		s.ok(sender.Send(s.context, message, nil))
	}
	s.equal([]string{"9", "5", "1"}, s.left())
}

func TestEverySectionComesBack(t *testing.T) {
	s := begin(t)
	message := durable("body")
	text, group, sequence := "text", "group", uint32(7)
	message.Properties = &amqp.MessageProperties{
		MessageID: amqp.UUID{1, 2, 3}, UserID: []byte("user"), Subject: &text, ReplyTo: &text,
		CorrelationID: uint64(9), ContentType: &text, GroupID: &group, GroupSequence: &sequence,
	}
	message.ApplicationProperties = map[string]any{
		"string": "s", "int32": int32(-1), "int64": int64(-1), "uint8": uint8(255),
		"float64": 1.5, "bool": true, "null": nil,
	}
	message.Annotations = amqp.Annotations{"x-opt-mine": "kept"}
	message.Footer = amqp.Annotations{"x-opt-end": int32(1)}
	s.ok(s.sender(nil).Send(s.context, message, nil))
	receiver := s.receiver(amqp.ReceiverOptions{Credit: 1})
	back := s.next(receiver)
	s.equal(message.Properties, back.Properties)
	s.equal(message.ApplicationProperties, back.ApplicationProperties)
	s.equal("kept", back.Annotations["x-opt-mine"])
	s.equal(message.Footer, back.Footer)
	s.equal(true, back.Header.Durable)
	s.equal("body", string(back.GetData()))
	s.ok(receiver.AcceptMessage(s.context, back))
}

func TestValuesAndSequences(t *testing.T) {
	s := begin(t)
	sender := s.sender(nil)
	s.ok(sender.Send(s.context, &amqp.Message{Value: map[string]any{"key": int64(1)}}, nil))
	s.ok(sender.Send(s.context, &amqp.Message{Sequence: [][]any{{"a", int32(2)}}}, nil))
	s.ok(sender.Send(s.context, &amqp.Message{Data: [][]byte{{1}, {}, {2, 3}}}, nil))
	receiver := s.receiver(amqp.ReceiverOptions{Credit: 3})
	s.equal(map[string]any{"key": int64(1)}, s.next(receiver).Value)
	s.equal([][]any{{"a", int32(2)}}, s.next(receiver).Sequence)
	s.equal([][]byte{{1}, {}, {2, 3}}, s.next(receiver).Data)
}

func TestLargeMessages(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	for _, frame := range []uint32{4096, 65536, 1 << 20} {
		s := beginWith(t, &amqp.ConnOptions{MaxFrameSize: frame})
		s.ok(s.sender(nil).Send(s.context, amqp.NewMessage(body), nil))
		receiver := s.receiver(amqp.ReceiverOptions{Credit: 1})
		message := s.next(receiver)
		if !bytes.Equal(body, message.GetData()) {
			t.Fatal("the body changed on its way")
		}
		s.ok(receiver.AcceptMessage(s.context, message))
	}
}

func TestTopics(t *testing.T) {
	s := begin(t)
	topic := amqp.ReceiverOptions{SourceCapabilities: []string{"topic"}, Credit: 10}
	one, other := s.receiver(topic), s.another().receiver(topic)
	sender := s.sender(&amqp.SenderOptions{TargetCapabilities: []string{"topic"}})
	s.ok(sender.Send(s.context, durable("one"), nil))
	s.ok(sender.Send(s.context, amqp.NewMessage([]byte("two")), nil))
	for _, receiver := range []*amqp.Receiver{one, other} {
		s.equal("one", string(s.next(receiver).GetData()))
		s.equal("two", string(s.next(receiver).GetData()))
	}
}

// A durable subscription belongs to one connection at a time, of those that go by one name.
func TestDurableSubscriptionPassesOnAtClose(t *testing.T) {
	contend(t, func(s scenario, first *amqp.Conn, _ net.Conn) { s.ok(first.Close()) })
}

func TestDurableSubscriptionPassesOnAtReset(t *testing.T) {
	contend(t, func(s scenario, _ *amqp.Conn, socket net.Conn) {
		// A reset: nobody says goodbye.
		s.ok(socket.(*net.TCPConn).SetLinger(0))
		s.ok(socket.Close())
	})
}

func contend(t *testing.T, end func(s scenario, first *amqp.Conn, socket net.Conn)) {
	s := begin(t)
	subscribe := func(session *amqp.Session) (*amqp.Receiver, error) {
		return session.NewReceiver(s.context, s.queue, &amqp.ReceiverOptions{
			Name:               s.queue,
			Credit:             -1,
			SourceCapabilities: []string{"topic"},
			SourceDurability:   amqp.DurabilityUnsettledState,
			SourceExpiryPolicy: amqp.ExpiryPolicyNever,
		})
	}
	conn, socket, session := s.named(s.queue)
	first, err := subscribe(session)
	s.ok(err)
	sender := s.sender(&amqp.SenderOptions{TargetCapabilities: []string{"topic"}})
	s.ok(sender.Send(s.context, durable("held"), nil))
	s.take(first, 1)

	_, _, other := s.named(s.queue)
	_, err = subscribe(other)
	var refused *amqp.Error
	if !errors.As(err, &refused) {
		s.Fatalf("in use, and not refused: %v", err)
	}
	end(s, conn, socket)
	second, err := subscribe(other)
	// The broker learns of a reset a moment later.
	for errors.As(err, &refused) && s.context.Err() == nil {
		second, err = subscribe(other)
	}
	s.ok(err)
	s.ok(sender.Send(s.context, durable("new"), nil))
	messages := s.take(second, 2)
	s.equal([]string{"held", "new"}, bodies(messages))
	for _, message := range messages {
		s.ok(second.AcceptMessage(s.context, message))
	}
	// This ends the subscription.
	s.ok(second.Close(s.context))
}

func TestDynamicNodes(t *testing.T) {
	s := begin(t)
	receiver, err := s.session.NewReceiver(s.context, "",
		&amqp.ReceiverOptions{DynamicAddress: true, Credit: 10})
	s.ok(err)
	if receiver.Address() == "" {
		t.Fatal("a dynamic node has a name")
	}
	other := s.another()
	other.queue = receiver.Address()
	other.send("reply")
	s.equal("reply", string(s.next(receiver).GetData()))
}

func TestAnonymousSender(t *testing.T) {
	s := begin(t)
	sender, err := s.session.NewSender(s.context, "", nil)
	s.ok(err)
	message := durable("hello")
	message.Properties = &amqp.MessageProperties{To: &s.queue}
	s.ok(sender.Send(s.context, message, nil))
	s.equal([]string{"hello"}, s.left())
}

func TestWaysToLogIn(t *testing.T) {
	for _, sasl := range []amqp.SASLType{
		nil, amqp.SASLTypeAnonymous(), amqp.SASLTypePlain("guest", "guest"),
	} {
		s := beginWith(t, &amqp.ConnOptions{SASLType: sasl})
		s.send("hello")
		s.equal([]string{"hello"}, s.left())
	}
}

func TestQuietConnectionStays(t *testing.T) {
	s := beginWith(t, &amqp.ConnOptions{IdleTimeout: time.Second})
	receiver := s.receiver(amqp.ReceiverOptions{Credit: 1})
	later := durable("later")
	later.Annotations = amqp.Annotations{"x-opt-delivery-delay": int64(4000)}
	other := s.another()
	s.ok(other.sender(nil).Send(s.context, later, nil))
	s.equal("later", string(s.next(receiver).GetData()))
}

func TestManyConnections(t *testing.T) {
	for range 200 {
		s := begin(t)
		s.ok(s.conn.Close())
	}
	s := begin(t)
	s.send("still there")
	s.equal([]string{"still there"}, s.left())
}

func TestManySessions(t *testing.T) {
	s := begin(t)
	for i := range 100 {
		session, err := s.conn.NewSession(s.context, nil)
		s.ok(err)
		sender, err := session.NewSender(s.context, s.queue, nil)
		s.ok(err)
		s.ok(sender.Send(s.context, durable(fmt.Sprint(i)), nil))
		if i%2 == 0 {
			s.ok(session.Close(s.context))
		}
	}
	s.equal(numbered(100), s.left())
}
