"""An agent that gets past its own door in every way that was thought of."""

import builtins  # refused
import gc  # refused
import importlib  # refused
import operator
import socket  # refused
import sys
from builtins import getattr as get  # refused
from importlib import import_module  # refused
from operator import methodcaller  # refused

import websockets  # refused
from websockets import connect as dial  # refused
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.client import connect as again  # refused
from websockets.sync.client import connect as blocking  # refused
import websockets.exceptions  # refused
from websockets.asyncio.connection import Connection  # refused
from websockets.asyncio.server import broadcast  # refused
from websockets.exceptions import ConnectionClosed
from websockets.protocol import Protocol  # refused

import agentlab.hosted.agent as module  # refused
from agentlab.hosted import agent as module_too  # refused
from agentlab.hosted.agent import *  # refused
from agentlab.hosted.agent import HostedAgent as Another  # refused
from agentlab.hosted.agent import Tally
from agentlab.hosted.agent import connect as third  # refused


class HostedAgent:
    async def send_to_table(self, frame):
        await self.__socket.send(frame)
        await self.__socket.send("once more")  # refused
        later(self.__socket.send(frame))  # refused
        self.out = lambda message: self.__socket.send(message)  # refused

        async def inner(message):
            await self.__socket.send(message)  # refused

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
            case HostedAgent(_HostedAgent__socket=out):  # refused
                await out(data)

    async def run(self):
        async with connect("ws://x") as self.__socket:
            if self.__socket is not None:
                async for message in self.__socket:
                    self.hear(message)
            await self.__socket.close()
            await self.__socket.close(1000, token)  # refused
            stop = self.__socket.close  # refused
            owner = self.peer.close.__self__  # refused
            if (named := self.__socket) is not None:  # refused
                await named.ping(token)  # refused
            every = [one for one in (self.__socket, self.other)]  # refused
        self.__socket = None
        self.__socket = self.made()  # refused
        async with connect("ws://x", create_connection=Loud) as self.__socket:  # refused
            pass
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


class Loud(ClientConnection):  # refused
    pass


Same = HostedAgent  # refused
Made = type("Made", (HostedAgent,), {})  # refused
HostedAgent.send_to_table = print  # refused


def by_name(agent: HostedAgent, frame) -> HostedAgent:
    setattr(agent, "x", frame)  # refused
    globals()["connect"]("ws://x")  # refused
    __builtins__["getattr"](agent, "x")  # refused
    __import__("websockets")  # refused
    library = sys.modules["websockets.asyncio.client"]  # refused
    reader, writer = await_(asyncio.open_connection("x", 1))  # refused
    return HostedAgent("rocky")


def outside(agent, frame):
    agent._HostedAgent__socket.send(frame)  # refused
    socket = agent._HostedAgent__socket  # refused
    name = "_HostedAgent__socket"  # refused
    agent.stream.send(frame)  # refused
    agent.send_to_table(frame)
    agent.pipe.write(frame)
