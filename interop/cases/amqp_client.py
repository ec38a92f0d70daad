"""AMQP 1.0 by hand: values, message sections, and a client of raw frames for the cases."""

import socket
import struct
import time


class Sym(str):
    pass


class UInt(int):
    pass


class ULong(int):
    pass


class UByte(int):
    pass


class UShort(int):
    pass


class Long(int):
    pass


class Byte(int):
    pass


class Short(int):
    pass


class Int(int):
    pass


class Time(int):
    pass


class Float(float):
    pass


class Char(str):
    pass


class Uuid(bytes):
    pass


class Dec(bytes):
    pass  # decimal32/64/128 by length


class Raw(bytes):
    pass  # encoded already


class Arr(list):  # array of symbols by default
    pass


class D:
    """A described value."""

    def __init__(self, descriptor, value):
        self.d, self.v = descriptor, value

    def __repr__(self):
        return f'D({self.d!r}, {self.v!r})'

    def __eq__(self, o):
        return isinstance(o, D) and (self.d, self.v) == (o.d, o.v)


def enc(v):
    if isinstance(v, Raw):
        return bytes(v)
    if v is None:
        return b'\x40'
    if v is True:
        return b'\x41'
    if v is False:
        return b'\x42'
    if isinstance(v, D):
        return b'\x00' + enc(v.d) + enc(v.v)
    if isinstance(v, UInt):
        return (
            b'\x43'
            if v == 0
            else b'\x52' + bytes([v]) if v < 256 else b'\x70' + struct.pack('>I', v)
        )
    if isinstance(v, ULong):
        return (
            b'\x44'
            if v == 0
            else b'\x53' + bytes([v]) if v < 256 else b'\x80' + struct.pack('>Q', v)
        )
    if isinstance(v, UByte):
        return b'\x50' + bytes([v])
    if isinstance(v, UShort):
        return b'\x60' + struct.pack('>H', v)
    if isinstance(v, Byte):
        return b'\x51' + struct.pack('>b', v)
    if isinstance(v, Short):
        return b'\x61' + struct.pack('>h', v)
    if isinstance(v, Int):
        return b'\x71' + struct.pack('>i', v)
    if isinstance(v, Time):
        return b'\x83' + struct.pack('>q', v)
    if isinstance(v, int):
        return b'\x81' + struct.pack('>q', v)
    if isinstance(v, Float):
        return b'\x72' + struct.pack('>f', v)
    if isinstance(v, float):
        return b'\x82' + struct.pack('>d', v)
    if isinstance(v, Char):
        return b'\x73' + struct.pack('>I', ord(v))
    if isinstance(v, Uuid):
        return b'\x98' + v
    if isinstance(v, Dec):
        return {4: b'\x74', 8: b'\x84', 16: b'\x94'}[len(v)] + v
    if isinstance(v, Sym):
        b = v.encode()
        return (
            b'\xa3' + bytes([len(b)]) if len(b) < 256 else b'\xb3' + struct.pack('>I', len(b))
        ) + b
    if isinstance(v, str):
        b = v.encode()
        return (
            b'\xa1' + bytes([len(b)]) if len(b) < 256 else b'\xb1' + struct.pack('>I', len(b))
        ) + b
    if isinstance(v, (bytes, bytearray)):
        return (
            b'\xa0' + bytes([len(v)]) if len(v) < 256 else b'\xb0' + struct.pack('>I', len(v))
        ) + bytes(v)
    if isinstance(v, Arr):
        items = b''.join(struct.pack('>I', len(x.encode())) + x.encode() for x in v)
        return b'\xf0' + struct.pack('>II', len(items) + 5, len(v)) + b'\xb3' + items
    if isinstance(v, dict):
        items = b''.join(enc(k) + enc(x) for k, x in v.items())
        return b'\xd1' + struct.pack('>II', len(items) + 4, len(v) * 2) + items
    if isinstance(v, (list, tuple)):
        if not v:
            return b'\x45'
        items = b''.join(enc(x) for x in v)
        return b'\xd0' + struct.pack('>II', len(items) + 4, len(v)) + items
    raise TypeError(repr(v))


def dec(b, i=0):
    c = b[i]
    i += 1
    if c == 0:
        d, i = dec(b, i)
        v, i = dec(b, i)
        return D(d, v), i
    return dec_of(c, b, i)


def dec_of(c, b, i):
    u = lambda f, n: (struct.unpack_from(f, b, i)[0], i + n)
    if c == 0x40:
        return None, i
    if c == 0x41:
        return True, i
    if c == 0x42:
        return False, i
    if c == 0x56:
        return b[i] == 1, i + 1
    if c == 0x43:
        return UInt(0), i
    if c == 0x44:
        return ULong(0), i
    if c == 0x45:
        return [], i
    if c == 0x50:
        return UByte(b[i]), i + 1
    if c == 0x51:
        v, i = u('>b', 1)
        return Byte(v), i
    if c == 0x52:
        return UInt(b[i]), i + 1
    if c == 0x53:
        return ULong(b[i]), i + 1
    if c == 0x54:
        v, i = u('>b', 1)
        return Int(v), i
    if c == 0x55:
        v, i = u('>b', 1)
        return Long(v), i
    if c == 0x60:
        v, i = u('>H', 2)
        return UShort(v), i
    if c == 0x61:
        v, i = u('>h', 2)
        return Short(v), i
    if c == 0x70:
        v, i = u('>I', 4)
        return UInt(v), i
    if c == 0x71:
        v, i = u('>i', 4)
        return Int(v), i
    if c == 0x72:
        v, i = u('>f', 4)
        return Float(v), i
    if c == 0x73:
        v, i = u('>I', 4)
        return Char(chr(v)), i
    if c == 0x74:
        return Dec(b[i : i + 4]), i + 4
    if c == 0x80:
        v, i = u('>Q', 8)
        return ULong(v), i
    if c == 0x81:
        v, i = u('>q', 8)
        return Long(v), i
    if c == 0x82:
        return u('>d', 8)
    if c == 0x83:
        v, i = u('>q', 8)
        return Time(v), i
    if c == 0x84:
        return Dec(b[i : i + 8]), i + 8
    if c == 0x94:
        return Dec(b[i : i + 16]), i + 16
    if c == 0x98:
        return Uuid(b[i : i + 16]), i + 16
    if c in (0xA0, 0xA1, 0xA3):
        n = b[i]
        x = b[i + 1 : i + 1 + n]
        return (x if c == 0xA0 else x.decode() if c == 0xA1 else Sym(x.decode())), i + 1 + n
    if c in (0xB0, 0xB1, 0xB3):
        n = struct.unpack_from('>I', b, i)[0]
        x = b[i + 4 : i + 4 + n]
        return (x if c == 0xB0 else x.decode() if c == 0xB1 else Sym(x.decode())), i + 4 + n
    if c in (0xC0, 0xC1, 0xD0, 0xD1):
        if c < 0xD0:
            size, count, j = b[i], b[i + 1], i + 2
            end = i + 1 + size
        else:
            size, count = struct.unpack_from('>II', b, i)
            j = i + 8
            end = i + 4 + size
        out = []
        for _ in range(count):
            v, j = dec(b, j)
            out.append(v)
        if c in (0xC1, 0xD1):
            m = {}
            for k in range(0, len(out), 2):
                m[out[k]] = out[k + 1]
            return m, end
        return out, end
    if c in (0xE0, 0xF0):
        if c == 0xE0:
            size, count, j = b[i], b[i + 1], i + 2
            end = i + 1 + size
        else:
            size, count = struct.unpack_from('>II', b, i)
            j = i + 8
            end = i + 4 + size
        code = b[j]
        j += 1
        desc = None
        if code == 0:
            desc, j = dec(b, j)
            code = b[j]
            j += 1
        out = Arr()
        for _ in range(count):
            v, j = dec_of(code, b, j)
            out.append(D(desc, v) if desc is not None else v)
        return out, end
    raise ValueError(hex(c))


NAMES = {
    0x10: 'open',
    0x11: 'begin',
    0x12: 'attach',
    0x13: 'flow',
    0x14: 'transfer',
    0x15: 'disposition',
    0x16: 'detach',
    0x17: 'end',
    0x18: 'close',
    0x40: 'sasl-mechanisms',
    0x41: 'sasl-init',
    0x42: 'sasl-challenge',
    0x43: 'sasl-response',
    0x44: 'sasl-outcome',
}
CODES = {v: k for k, v in NAMES.items()}
ACCEPTED, REJECTED, RELEASED = D(ULong(0x24), []), D(ULong(0x25), []), D(ULong(0x26), [])


def MODIFIED(failed=None, undeliverable=None, annotations=None):
    return D(ULong(0x27), [failed, undeliverable, annotations])


def SOURCE(
    address=None,
    durable=None,
    expiry=None,
    timeout=None,
    dynamic=None,
    props=None,
    mode=None,
    filter=None,
    default=None,
    outcomes=None,
    caps=None,
):
    return D(
        ULong(0x28),
        [address, durable, expiry, timeout, dynamic, props, mode, filter, default, outcomes, caps],
    )


def TARGET(
    address=None, durable=None, expiry=None, timeout=None, dynamic=None, props=None, caps=None
):
    return D(ULong(0x29), [address, durable, expiry, timeout, dynamic, props, caps])


COORDINATOR = D(ULong(0x30), [None])


def message(
    body=b'',
    header=None,
    delivery_annotations=None,
    annotations=None,
    properties=None,
    application=None,
    footer=None,
    value='data',
):
    out = b''
    if header is not None:
        out += enc(D(ULong(0x70), header))
    if delivery_annotations is not None:
        out += enc(D(ULong(0x71), delivery_annotations))
    if annotations is not None:
        out += enc(D(ULong(0x72), annotations))
    if properties is not None:
        out += enc(D(ULong(0x73), properties))
    if application is not None:
        out += enc(D(ULong(0x74), application))
    if value == 'data':
        out += enc(D(ULong(0x75), body))
    elif value == 'value':
        out += enc(D(ULong(0x77), body))
    elif value == 'sequence':
        out += enc(D(ULong(0x76), body))
    elif value == 'raw':
        out += body
    if footer is not None:
        out += enc(D(ULong(0x78), footer))
    return out


def sections(payload):
    out, i = {}, 0
    names = {
        0x70: 'header',
        0x71: 'delivery-annotations',
        0x72: 'annotations',
        0x73: 'properties',
        0x74: 'application',
        0x75: 'data',
        0x76: 'sequence',
        0x77: 'value',
        0x78: 'footer',
    }
    while i < len(payload):
        v, i = dec(payload, i)
        n = names[int(v.d)]
        if n in ('data', 'sequence') and n in out:
            out.setdefault(n + '+', []).append(v.v)
        else:
            out[n] = v.v
    return out


def props(
    message_id=None,
    user_id=None,
    to=None,
    subject=None,
    reply_to=None,
    correlation_id=None,
    content_type=None,
    content_encoding=None,
    absolute_expiry=None,
    creation=None,
    group_id=None,
    group_sequence=None,
    reply_to_group=None,
):
    return [
        message_id,
        user_id,
        to,
        subject,
        reply_to,
        correlation_id,
        content_type,
        content_encoding,
        absolute_expiry,
        creation,
        group_id,
        group_sequence,
        reply_to_group,
    ]


class Frame:
    def __init__(self, channel, name, fields, payload):
        self.channel, self.name, self.fields, self.payload = channel, name, fields, payload

    def __getitem__(self, i):
        return self.fields[i] if i < len(self.fields) else None

    def __repr__(self):
        return f'{self.name}@{self.channel}{self.fields}' + (
            f'+{len(self.payload)}' if self.payload else ''
        )


class Amqp:
    def __init__(
        self,
        s,
        container='case',
        hostname='localhost',
        sasl=None,
        open=True,
        max_frame=65536,
        channel_max=255,
        idle=None,
        desired=None,
        properties=None,
        begin=True,
    ):
        self.s, self.buf, self.seen = s, b'', []
        self.sasl = sasl
        if sasl:
            self.s.sendall(b'AMQP\x03\x01\x00\x00')
            self.header()
            self.mechanisms = self.read(sasl=True)
            self.send(0, 'sasl-init', [Sym(sasl[0])] + list(sasl[1:]), kind=1)
            self.outcome = self.read(sasl=True)
        self.s.sendall(b'AMQP\x00\x01\x00\x00')
        self.their_header = self.header()
        self.handles = 0
        if open:
            self.send(
                0,
                'open',
                [
                    container,
                    hostname,
                    UInt(max_frame) if max_frame else None,
                    UShort(channel_max),
                    UInt(idle) if idle is not None else None,
                    None,
                    None,
                    None,
                    Arr(desired) if desired else None,
                    properties,
                ],
            )
            self.opened = self.expect('open')
            if begin:
                self.begin()

    def header(self):
        while len(self.buf) < 8:
            d = self.s.recv(65536)
            if not d:
                return b''
            self.buf += d
        h, self.buf = self.buf[:8], self.buf[8:]
        return h

    def send(self, channel, name, fields, payload=b'', kind=0):
        body = enc(D(ULong(CODES[name]), fields)) + payload
        self.s.sendall(struct.pack('>IBBH', len(body) + 8, 2, kind, channel) + body)

    def read(self, sasl=False, timeout=None):
        """The next frame, None where the connection has ended; raises socket.timeout."""
        if timeout is not None:
            self.s.settimeout(timeout)
        try:
            while True:
                while len(self.buf) < 4 or len(self.buf) < struct.unpack('>I', self.buf[:4])[0]:
                    d = self.s.recv(1 << 20)
                    if not d:
                        return None
                    self.buf += d
                size, doff, kind, channel = struct.unpack('>IBBH', self.buf[:8])
                body, self.buf = self.buf[doff * 4 : size], self.buf[size:]
                if not body:
                    continue
                v, i = dec(body)
                return Frame(channel, NAMES.get(int(v.d), hex(v.d)), v.v, body[i:])
        finally:
            if timeout is not None:
                self.s.settimeout(10)

    def expect(self, *names, timeout=10):
        """The next frame of one of these names, None at the end or after the time.

        Others are kept in .seen."""
        end = time.time() + timeout
        for k, f in enumerate(self.seen):
            if f.name in names:
                return self.seen.pop(k)
        while True:
            try:
                f = self.read(timeout=max(0.01, end - time.time()))
            except (socket.timeout, TimeoutError):
                return None
            if f is None:
                return None
            if f.name in names:
                return f
            self.seen.append(f)

    def begin(self, channel=0, next_id=0, window=1 << 20, handle_max=1023, remote=None):
        self.send(
            channel, 'begin', [remote, UInt(next_id), UInt(window), UInt(window), UInt(handle_max)]
        )
        return self.expect('begin')

    def attach(
        self,
        role,
        name=None,
        source=None,
        target=None,
        channel=0,
        snd=None,
        rcv=None,
        initial=0,
        unsettled=None,
        max_size=None,
        handle=None,
        caps=None,
        desired=None,
        props=None,
        incomplete=None,
    ):
        handle = self.handles if handle is None else handle
        self.handles = max(self.handles, handle + 1)
        name = name or f'link-{handle}'
        self.send(
            channel,
            'attach',
            [
                name,
                UInt(handle),
                role,
                UByte(snd) if snd is not None else None,
                UByte(rcv) if rcv is not None else None,
                source,
                target,
                unsettled,
                incomplete,
                UInt(initial) if not role else None,
                ULong(max_size) if max_size is not None else None,
                Arr(caps) if caps else None,
                Arr(desired) if desired else None,
                props,
            ],
        )
        f = self.expect('attach')
        return handle, f

    def sender(self, address, caps=None, **kw):
        t = (
            TARGET(address, caps=Arr(caps) if caps else None)
            if isinstance(address, str) or address is None
            else address
        )
        h, f = self.attach(False, source=kw.pop('source', SOURCE(None)), target=t, **kw)
        self.expect('flow')
        return h

    def receiver(self, address, credit=0, caps=None, **kw):
        s = (
            SOURCE(address, caps=Arr(caps) if caps else None)
            if isinstance(address, str) or address is None
            else address
        )
        h, f = self.attach(True, source=s, target=kw.pop('target', TARGET(None)), **kw)
        if credit:
            self.flow(h, credit)
        return h

    def flow(
        self,
        handle=None,
        credit=None,
        count=0,
        drain=None,
        channel=0,
        echo=None,
        next_in=0,
        next_out=0,
        window=1 << 20,
        available=None,
    ):
        self.send(
            channel,
            'flow',
            [
                UInt(next_in),
                UInt(window),
                UInt(next_out),
                UInt(window),
                UInt(handle) if handle is not None else None,
                UInt(count) if handle is not None else None,
                UInt(credit) if credit is not None else None,
                UInt(available) if available is not None else None,
                drain,
                echo,
                None,
            ],
        )

    def transfer(
        self,
        handle,
        payload,
        id=None,
        tag=None,
        settled=None,
        more=None,
        state=None,
        channel=0,
        format=0,
        aborted=None,
        resume=None,
        rcv=None,
    ):
        if id is None:
            self.ids = getattr(self, 'ids', -1) + 1
            id = self.ids
        tag = tag if tag is not None else struct.pack('>I', id)
        self.send(
            channel,
            'transfer',
            [
                UInt(handle),
                UInt(id),
                tag,
                UInt(format),
                settled,
                more,
                UByte(rcv) if rcv is not None else None,
                state,
                resume,
                aborted,
            ],
            payload,
        )
        return id

    def post(self, handle, payload, **kw):
        """Sends one and waits for its disposition; gives the state."""
        id = self.transfer(handle, payload, **kw)
        f = self.expect('disposition', 'detach', 'end', 'close')
        if f is None:
            return None
        return f[4] if f.name == 'disposition' else f

    def take(self, timeout=5):
        """The next whole delivery: (frame, payload) or None."""
        payload = b''
        first = None
        end = time.time() + timeout
        while True:
            f = self.expect('transfer', timeout=max(0.01, end - time.time()))
            if f is None:
                return None
            first = first or f
            payload += f.payload
            if not f[5]:
                return first, payload

    def settle(self, first, state=ACCEPTED, last=None, role=True, settled=True, channel=0):
        self.send(
            channel,
            'disposition',
            [role, UInt(first), UInt(last) if last is not None else None, settled, state],
        )

    def close(self):
        try:
            self.send(0, 'close', [None])
            self.expect('close', timeout=3)
        except OSError:
            pass
        self.s.close()
