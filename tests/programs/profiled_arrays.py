# Two places that ask for memory, through one and the same machine code.


def big(n):
    return bytearray(n)


def other(n):
    return bytearray(n)


def grown():
    items = []
    for i in range(400000):
        items.append(None)
    return items


keep = [big(3000000), other(5000000), grown()]
for _ in range(3):
    keep.append(big(3000000))
total = 0
for _ in range(20):
    for block in keep:
        total += len(block)
print("OK" if total == 20 * (4 * 3000000 + 5000000 + 400000) else "BAD")
