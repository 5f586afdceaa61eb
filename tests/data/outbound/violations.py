"""An agent that gets past its own door in every way that was thought of."""

import operator
from operator import methodcaller  # refused

import websockets  # refused
from websockets import connect as dial  # refused
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.client import connect as again  # refused
from websockets.sync.client import connect as blocking  # refused


class HostedAgent:
    async def send_to_table(self, frame):
        await self.__socket.send(frame)
        out = self.__socket  # refused
        await self.other.send(frame)  # refused

    async def enter(self, token):
        await self.__socket.send(token)  # refused
        send = self.__socket.send  # refused
        await send(token)
        alias = self.__socket  # refused
        await alias.send(token)  # refused
        await getattr(alias, "send")(token)  # refused
        await getattr(alias, "se" + "nd")(token)  # refused
        await operator.methodcaller("send", token)(alias)  # refused
        await operator.attrgetter("send")(alias)(token)  # refused
        await alias.__getattribute__("send")(token)  # refused
        vars(self)["x"] = token  # refused
        self.__dict__["_HostedAgent__socket"].send(token)  # refused
        eval("self.x")  # refused
        helper(self.__socket)  # refused
        boxes = [self.__socket]  # refused
        return self.__socket  # refused

    async def lower(self, data):
        self.__socket.transport.write(data)  # refused
        self.__socket.protocol.send_text(data)  # refused
        writer = self.__socket.transport  # refused
        match self.peer:
            case Peer(send=out):  # refused
                await out(data)

    async def run(self):
        async with connect("ws://x") as self.__socket:
            if self.__socket is not None:
                async for message in self.__socket:
                    self.hear(message)
            await self.__socket.close()
        async with connect("ws://x") as other:  # refused
            pass
        once_more = await connect("ws://x")  # refused
        dialled = connect  # refused
        async for message in self.elsewhere.__socket:  # refused
            pass

    async def peek(self):
        if self.__socket is self.other:  # refused
            pass


class Louder(HostedAgent):  # refused
    pass


def outside(agent, frame):
    agent._HostedAgent__socket.send(frame)  # refused
    socket = agent._HostedAgent__socket  # refused
    name = "_HostedAgent__socket"  # refused
    agent.stream.send(frame)  # refused
    agent.send_to_table(frame)
    agent.pipe.write(frame)
